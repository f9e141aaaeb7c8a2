"""The pool: legs become nodes with one score each, nodes become candidate spans.

The legs are a table: name, what found the nodes, how they score. A node takes the largest S(n) of its legs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.ports import LedgerCounter, TokenCounter
from planner.recall.expansion import Expansion, Provenance, expand
from planner.recall.frame import Frame
from planner.recall.semantic import Semantic, nearest
from planner.recall.structured import Structured
from planner.recall.v2.pool import found_by_v2
from planner.store.connect import Connection
from planner.types import NO_TEXT_HASH, Candidate, RecalledNode

SpanKey = tuple[str, int, int, int]
LedgerCount = Callable[[int, int, int], int]

BODY = "body"
"""The kind of a span that the ledger has no row for."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of Phase A.

    `candidates` have no token count yet where the counter must read their text (`uncounted` says which
    positions). `cut_spans` are the references that `max_spans` or `min_score` kept out, with their score.
    """

    nodes: tuple[RecalledNode, ...]
    candidates: tuple[Candidate, ...]
    uncounted: tuple[int, ...]
    kind_missing: int
    merged: int
    cut_spans: dict[str, list[tuple[str, float]]]
    stats: dict[str, Any] = field(default_factory=dict)


def recall(conn: Connection, frame: Frame, counter: TokenCounter) -> Recalled:
    """Run recall by the score model of the settings, and make candidates of the nodes that it found."""
    found = found_by_v2 if frame.settings.score_model == "v2" else _found_by_v1
    semantic, structured, nodes, expansion, more = found(conn, frame)
    stats = {**_stats(frame, semantic, structured, expansion), **more}
    return _explode(frame, nodes, expansion, counter, stats)


def _found_by_v1(
    conn: Connection, frame: Frame
) -> tuple[Semantic, Structured, tuple[RecalledNode, ...], Expansion, dict[str, Any]]:
    """Run both statements of recall, and fuse what they found."""
    alpha = frame.settings.alpha
    semantic, structured = nearest(conn, frame)
    first: dict[str, float] = {node: semantic.score(node, alpha) for node in semantic.similarities}
    for node, score in structured.scores.items():
        first[node] = max(score, first.get(node, 0.0))
    ranked = sorted(first, key=lambda node: (-first[node], node))
    expansion = expand(conn, frame, ranked[: frame.request.roots], ranked, semantic.similarities)
    return semantic, structured, _nodes(frame, semantic, structured, expansion), expansion, {}


def _nodes(
    frame: Frame, semantic: Semantic, structured: Structured, expansion: Expansion
) -> tuple[RecalledNode, ...]:
    """Fuse the legs: the largest S(n) counts, every leg is kept; `max_nodes` cuts by (S desc, node_id)."""
    alpha = frame.settings.alpha
    legs: tuple[tuple[str, Sequence[str] | dict[str, Any], Callable[[str], float]], ...] = (
        ("structured", structured.scores, structured.scores.__getitem__),
        ("semantic", semantic.similarities, lambda node: semantic.score(node, alpha)),
        ("expansion", expansion.reached, lambda node: expansion.score(node, alpha)),
    )
    found: dict[str, list[tuple[str, float]]] = {}
    for name, nodes, score in legs:
        for node in nodes:
            found.setdefault(node, []).append((name, score(node)))
    best = {node: max(score for _, score in scores) for node, scores in found.items()}
    order = sorted(best, key=lambda node: (-best[node], node))
    limit = frame.request.max_nodes or 0
    return tuple(
        RecalledNode(
            node_id=node,
            score=best[node],
            legs=tuple(name for name, _ in found[node]),
            similarity=_similarity(node, semantic, expansion),
            reached=expansion.reached.get(node),
            cut=position >= limit,
        )
        for position, node in enumerate(order)
    )


def _similarity(node: str, semantic: Semantic, expansion: Expansion) -> float | None:
    if node in semantic.similarities:
        return semantic.similarities[node]
    reached = expansion.reached.get(node)
    return reached.similarity if reached else None


def _explode(
    frame: Frame,
    nodes: tuple[RecalledNode, ...],
    expansion: Expansion,
    counter: TokenCounter,
    stats: dict[str, Any],
) -> Recalled:
    """Turn nodes into candidates: one a span, of the node with the largest S, ties to the smaller node id."""
    scores = {node.node_id: node.score for node in nodes if not node.cut}
    rows = [row for row in expansion.provenance if row.node_id in scores]
    rows.sort(key=lambda row: (-scores[row.node_id], row.node_id))
    best: dict[SpanKey, Provenance] = {}
    for row in rows:
        best.setdefault(row[1:5], row)
    spans = sorted(best.values(), key=lambda row: (-scores[row.node_id], row[1:5]))
    kept, cut = _cut_spans(frame, spans, scores)
    count = counter.count_ledger if isinstance(counter, LedgerCounter) else None  # asked once: it is slow
    candidates = tuple(_candidate(row, scores[row.node_id], count) for row in kept)
    uncounted = tuple(
        i for i, c in enumerate(candidates) if c.sliceable and (count is None or kept[i].kind is None)
    )
    stats["spans"] = len(spans)
    stats["cut"] = {"max_nodes": len(nodes) - len(scores), **{name: len(refs) for name, refs in cut.items()}}
    stats["stale"] = [str(row.ref) for row in kept if row.stale]
    kind_missing = sum(row.kind is None for row in kept)
    return Recalled(nodes, candidates, uncounted, kind_missing, len(rows) - len(spans), cut, stats)


def _cut_spans(
    frame: Frame, spans: list[Provenance], scores: Mapping[str, float]
) -> tuple[list[Provenance], dict[str, list[tuple[str, float]]]]:
    """Return the spans that stay, and those that `min_score` and `max_spans` keep out, best first."""
    floor, limit = frame.request.min_score, frame.request.max_spans or 0
    above = [row for row in spans if floor is None or scores[row.node_id] >= floor]
    dropped = {"min_score": spans[len(above) :], "max_spans": above[limit:]}
    listed = {name: [(str(row.ref), scores[row.node_id]) for row in rows] for name, rows in dropped.items()}
    return above[:limit], listed


def _candidate(row: Provenance, score: float, count: LedgerCount | None) -> Candidate:
    return Candidate(
        source_id=row.source_id,
        version_tx=row.version_tx,
        start=row.start,
        end=row.end,
        kind=row.kind or BODY,
        source_class=row.source_class,
        score=score,
        tokens=count(row.ascii_bytes, row.non_ascii_chars, row.end - row.start) if count and row.kind else 0,
        text_hash=row.text_hash or NO_TEXT_HASH,
        node_id=row.node_id,
        sliceable=not row.erased and row.end <= row.byte_length,
    )


def _stats(frame: Frame, semantic: Semantic, structured: Structured, expansion: Expansion) -> dict[str, Any]:
    return {
        "method": frame.method,
        "semantic": {
            "asked": semantic.asked,
            "returned": semantic.returned,
            "kept": len(semantic.similarities),
            "underfilled": frame.method == "ann"
            and semantic.returned < min(semantic.asked, frame.state.live_nodes),
            "rounds": semantic.rounds,
        },
        "structured": {
            "kept": len(structured.scores),
            "cut": structured.cut,
            "missing_seeds": list(structured.missing_seeds),
        },
        "expansion": {"reached": len(expansion.reached)},
    }
