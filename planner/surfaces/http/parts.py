"""The further surfaces that are installed: each is a module with `part`, and a library of an extra."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType

from planner.surfaces.http.service import PartOf

PARTS: Mapping[str, str] = MappingProxyType(
    {"planner.surfaces.viewer": "jinja2", "planner.surfaces.mcp": "mcp"}
)
"""Modules that have `part(service) -> Part`, and the library without which each is left out."""


def installed() -> list[PartOf]:
    """Return the parts whose libraries are there."""
    return [import_module(module).part for module, library in PARTS.items() if find_spec(library) is not None]
