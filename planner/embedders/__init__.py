"""Embedders: the local default, and any callable."""

from __future__ import annotations

from functools import cache

from planner.embedders.callable import CallableEmbedder
from planner.embedders.wordllama import WordLlamaEmbedder
from planner.errors import SettingsError
from planner.ports import Embedder

__all__ = ["CallableEmbedder", "WordLlamaEmbedder", "embedder"]


@cache
def embedder(name: str) -> Embedder:
    """Return the embedder of that name, one a process. Raises SettingsError for an unknown name."""
    if name == WordLlamaEmbedder.name:
        return WordLlamaEmbedder()
    raise SettingsError(
        f"unknown embedder {name!r}; use {WordLlamaEmbedder.name!r}, or pass an Embedder in Python",
        key="embedder",
    )
