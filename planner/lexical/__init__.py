"""Terms, and what BM25 makes of them: pure."""
