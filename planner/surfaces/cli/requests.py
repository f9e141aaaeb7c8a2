"""Plan requests as people and programs write them: options of a command line, lines of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import RequestError
from planner.request import PlanRequest
from planner.surfaces.json_text import json_object


def seed(text: str) -> dict[str, Any]:
    """Read `NODE` or `NODE=score`; a node id that itself ends like `=0.5` needs its score written out."""
    node_id, equals, score = text.rpartition("=")
    if equals:
        try:
            return {"node_id": node_id, "score": float(score)}
        except ValueError:
            pass
    return {"node_id": text}


def from_line(line: bytes, number: int, defaults: Mapping[str, Any]) -> PlanRequest:
    """Read a line of a batch; what it does not say comes from `defaults`. Raises RequestError."""
    data = {**defaults, **json_object(line, f"line {number}")}
    if "scope" not in data:
        raise RequestError("scope: give it in the line, or as the argument SCOPE", field="scope")
    return PlanRequest.parse(data)
