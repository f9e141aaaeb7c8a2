"""The only composer: ingest, plan and explain, each read top to bottom in a file of its own."""
