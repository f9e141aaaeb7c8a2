"""Embedders: the local default, any OpenAI-compatible endpoint, and any callable."""

from __future__ import annotations

import atexit
from functools import cache

from planner.embedders.callable import CallableEmbedder
from planner.embedders.http import HttpEmbedder
from planner.embedders.wordllama import WordLlamaEmbedder
from planner.errors import SettingsError
from planner.ports import Embedder
from planner.settings import HttpEndpoint

__all__ = ["CallableEmbedder", "HttpEmbedder", "WordLlamaEmbedder", "embedder"]


@cache
def embedder(name: str, endpoint: HttpEndpoint | None = None) -> Embedder:
    """Return the embedder of that name, one a process; `endpoint` is where `http` finds its service.

    Raises SettingsError for an unknown name, for `http` without an endpoint, and for a key that is not set.
    """
    if name == WordLlamaEmbedder.name:
        return WordLlamaEmbedder()
    if name == "http" and endpoint is not None:
        made = HttpEmbedder(endpoint)
        atexit.register(made.close)
        return made
    if name == "http":
        raise SettingsError(
            "embedder 'http' needs [planner.embedder_http] with url, model and dimensions",
            key="embedder_http",
        )
    raise SettingsError(
        f"unknown embedder {name!r}; use {WordLlamaEmbedder.name!r} or 'http', or pass an Embedder in Python",
        key="embedder",
    )
