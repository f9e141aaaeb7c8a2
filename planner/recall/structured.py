"""The structured leg: nodes that satisfy `match`, and seeds. S(n) = 1.0, or the seed's own score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import sql

from planner.recall.frame import Frame
from planner.recall.score import MATCHED
from planner.store.queries import compose


@dataclass(frozen=True, slots=True)
class Structured:
    """What the leg found: scores by node, whether `structured_limit` cut it, and seeds that are not there."""

    scores: dict[str, float]
    cut: bool
    missing_seeds: tuple[str, ...]


def fragment(frame: Frame) -> sql.Composed:
    """Return the leg's part of the first statement."""
    return compose("structured", match=frame.match, must=frame.must)


def params(frame: Frame) -> dict[str, object]:
    """Return the leg's own parameters."""
    return {
        "structured_limit": frame.request.structured_limit,
        "seeds": [seed.node_id for seed in frame.request.seeds],
    }


def read(frame: Frame, rows: Iterable[tuple[str, str]]) -> Structured:
    """Read the leg's rows `(leg, node_id)`; a node that matches and is a seed takes the larger score."""
    limit = frame.request.structured_limit or 0
    matched, found = [], set()
    for leg, node_id in rows:
        if leg == "match":
            matched.append(node_id)
        else:
            found.add(node_id)
    scores = dict.fromkeys(sorted(matched)[:limit], MATCHED)
    for seed in frame.request.seeds:
        if seed.node_id in found:
            scores[seed.node_id] = max(seed.score, scores.get(seed.node_id, 0.0))
    missing = tuple(sorted({seed.node_id for seed in frame.request.seeds} - found))
    return Structured(scores, len(matched) > limit, missing)
