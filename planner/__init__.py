"""Reproducible evidence plans for language models, decided inside PostgreSQL."""
