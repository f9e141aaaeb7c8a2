"""Phase B: which candidates of a pool enter a plan, and what became of every other one. Pure."""
