"""`score_model: v2` (ranking.md): one additive score of a node's terms, over a pool that links have grown."""
