"""The weights of `score_model: v2`, fitted to labelled corpora through the real path."""
