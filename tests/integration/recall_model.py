"""recall.md (`score_model: v1`) in plain Python over a graph in memory: what SQL must agree with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

Step = tuple[tuple[str, ...], float]
"""A path and its decay."""

ALPHA, HOP_DECAY = 0.7, 0.5
BEGINNING, END = (datetime.fromisoformat(f"{year}-01-01T00:00:00Z") for year in ("0001", "9999"))


@dataclass(frozen=True)
class Node:
    """A node as the import describes it; `spans` are keys of a candidate."""

    node_id: str
    kind: str = "fact"
    vector: tuple[float, float] | None = None
    spans: tuple[tuple[int, int], ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    observed_at: datetime | None = None


@dataclass(frozen=True)
class Edge:
    """A directed edge."""

    src: str
    dst: str
    predicate: str
    confidence: float


@dataclass(frozen=True)
class Ask:
    """A request; `must` and `match` are sets of kinds."""

    questions: tuple[tuple[float, float], ...]
    match: frozenset[str] | None
    must: frozenset[str] | None
    window: tuple[str, datetime | None, datetime | None] | None
    seeds: dict[str, float]
    k: int
    hops: int
    roots: int
    fanout: int
    direction: str
    max_nodes: int
    max_spans: int
    min_score: float | None


@dataclass
class Found:
    """A node in play: what each leg says of it."""

    legs: dict[str, float] = field(default_factory=dict)
    similarity: float | None = None
    path: tuple[str, ...] | None = None
    decay: float | None = None

    @property
    def score(self) -> float:
        return max(self.legs.values())


def similarity(vector: Sequence[float], questions: Sequence[Sequence[float]]) -> float:
    """Return the best of the exact similarities, on the grid of 2**-20."""

    def grid(v: Sequence[float]) -> list[int]:
        norm = math.sqrt(math.fsum(x * x for x in v))
        return [round(float(np.float32(x / norm)) * 2**20) for x in v]

    products = (sum(a * b for a, b in zip(grid(vector), grid(q), strict=True)) / 2**40 for q in questions)
    return min(1.0, max(0.0, *products)) if len(questions) > 1 else min(1.0, max(0.0, next(products)))


def recalled(nodes: dict[str, Node], edges: Sequence[Edge], ask: Ask) -> dict[str, Found]:
    """Return every node that the three legs find."""
    found: dict[str, Found] = {}
    for name in _structured(nodes, ask):
        found.setdefault(name, Found()).legs["structured"] = max(
            1.0 if ask.match is not None and nodes[name].kind in ask.match else 0.0, ask.seeds.get(name, 0.0)
        )
    universe = [n for n in nodes.values() if n.vector and ask.questions and _passes(n, ask)]
    sims = {n.node_id: similarity(n.vector or (), ask.questions) for n in universe}
    for name in sorted(sims, key=lambda n: (-sims[n], n))[: ask.k]:
        here = found.setdefault(name, Found())
        here.legs["semantic"], here.similarity = ALPHA * sims[name] + (1 - ALPHA) * 1.0, sims[name]
    for path, decay in _best_paths(nodes, edges, ask, sorted(found, key=lambda n: (-found[n].score, n))):
        node, here = nodes[path[-1]], found.setdefault(path[-1], Found())
        here.path, here.decay = path, decay
        if node.vector and ask.questions:
            here.similarity = similarity(node.vector, ask.questions)
            here.legs["expansion"] = ALPHA * here.similarity + (1 - ALPHA) * decay
        else:
            here.legs["expansion"] = decay
    return found


def pool(
    nodes: dict[str, Node], found: dict[str, Found], ask: Ask
) -> dict[tuple[int, int], tuple[float, str]]:
    """Return the candidates that the limits leave: score and node of each span."""
    kept = sorted(found, key=lambda n: (-found[n].score, n))[: ask.max_nodes]
    best: dict[tuple[int, int], tuple[float, str]] = {}
    for name in kept:
        for span in nodes[name].spans:
            best.setdefault(span, (found[name].score, name))
    ordered = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    above = [item for item in ordered if ask.min_score is None or item[1][0] >= ask.min_score]
    return dict(above[: ask.max_spans])


def _structured(nodes: dict[str, Node], ask: Ask) -> list[str]:
    allowed = [n for n in nodes.values() if ask.must is None or n.kind in ask.must]
    matching = [n.node_id for n in allowed if ask.match is not None and n.kind in ask.match]
    return matching + [n.node_id for n in allowed if n.node_id in ask.seeds]


def _passes(node: Node, ask: Ask) -> bool:
    if ask.must is not None and node.kind not in ask.must:
        return False
    if ask.window is None:
        return True
    axis, start, end = ask.window
    if axis == "observed":
        at = node.observed_at
        return at is not None and (start or BEGINNING) <= at < (end or END)
    return (node.valid_to or END) > (start or BEGINNING) and (node.valid_from or BEGINNING) < (end or END)


def _best_paths(
    nodes: dict[str, Node], edges: Sequence[Edge], ask: Ask, order: Sequence[str]
) -> Iterator[Step]:
    paths: list[Step] = [((root,), 1.0) for root in order[: ask.roots]]
    walked: list[Step] = []
    for _ in range(ask.hops):
        paths = [
            ((*path, node_id), decay * (confidence * HOP_DECAY))
            for path, decay in paths
            for node_id, confidence in _near(nodes, edges, ask, path)
        ]
        walked += paths
    best: dict[str, Step] = {}
    for path, decay in sorted(walked, key=lambda item: (-item[1], item[0])):
        best.setdefault(path[-1], (path, decay))
    yield from best.values()


def _near(
    nodes: dict[str, Node], edges: Sequence[Edge], ask: Ask, path: tuple[str, ...]
) -> list[tuple[str, float]]:
    """Return the next nodes of a path: its first `fanout` edges to an admitted node off the path."""
    steps = []
    for e in edges:
        out, into = ask.direction in ("both", "out"), ask.direction in ("both", "in")
        steps += [(e.confidence, e.predicate, e.dst)] if out and e.src == path[-1] else []
        steps += [(e.confidence, e.predicate, e.src)] if into and e.dst == path[-1] else []
    allowed = [step for step in steps if step[2] not in path and _passes(nodes[step[2]], ask)]
    allowed.sort(key=lambda step: (-step[0], step[1], step[2]))
    return [(node_id, confidence) for confidence, _, node_id in allowed[: ask.fanout]]


def as_row(found: Found, cut: bool) -> dict[str, Any]:
    """Return a node as the trace keeps it."""
    return {
        "legs": [leg for leg in ("structured", "semantic", "expansion") if leg in found.legs],
        "score": found.score,
        "similarity": found.similarity,
        "hops": len(found.path) - 1 if found.path else None,
        "decay": found.decay,
        "path": list(found.path) if found.path else None,
        "cut": "max_nodes" if cut else None,
    }
