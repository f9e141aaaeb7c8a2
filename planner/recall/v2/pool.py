"""Recall by `score_model: v2`, read top to bottom: two legs, what stands beside the best, links, scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.lexical.packing import finding
from planner.recall.expansion import Expansion
from planner.recall.frame import Frame
from planner.recall.semantic import Semantic, nearest
from planner.recall.structured import Structured
from planner.recall.v2.features import BEST
from planner.recall.v2.lexical import Index
from planner.recall.v2.question import asked, spoken
from planner.recall.v2.stages import Play, Scored
from planner.recall.v2.weights import weights
from planner.store.connect import Connection
from planner.types import Reached, RecalledNode


def found_by_v2(
    conn: Connection, frame: Frame
) -> tuple[Semantic, Structured, tuple[RecalledNode, ...], Expansion, dict[str, Any]]:
    """Return both legs that start from the request, the scored nodes, their provenance, and further stats.

    Raises RequestError where the scope has no lexical index.
    """
    wide = widened(frame)
    index = Index.of(conn, wide)
    semantic, structured = nearest(conn, wide)
    play = _play(index, semantic)
    play.begin({*semantic.similarities, *play.lexical, *structured.scores})
    scored = play.scored(play.link())
    nodes = _nodes(wide, play, scored, semantic, structured)
    return semantic, structured, nodes, Expansion({}, play.provenance), _stats(play, scored, nodes)


def widened(frame: Frame) -> Frame:
    """Return the frame with the `k` of this model: both legs are compared by their 200 best at least."""
    request = frame.request.model_copy(update={"k": max(frame.request.k or 0, BEST)})
    return replace(frame, request=request)


def _play(index: Index, semantic: Semantic) -> Play:
    request = index.frame.request
    formulations = spoken([text for text in (request.text, *request.parts) if text])
    terms = {int(term) for flagged in formulations for term in finding(flagged)}
    index.count(terms)
    question = asked(formulations, {t: index.idf(t) for t in terms if index.counts[t] > 0})
    lexical = index.nearest(question.terms, question.idf, request.k or BEST)
    of = weights(index.frame.settings.score_weights)
    return Play(index, question, of, semantic.similarities, lexical)


def _nodes(
    frame: Frame, play: Play, scored: Scored, semantic: Semantic, structured: Structured
) -> tuple[RecalledNode, ...]:
    """Score what is in play; what the request itself names keeps the larger of its own score and that."""
    scores = dict(zip(scored.nodes, map(play.weights.score, scored.totals), strict=True))
    for node, score in structured.scores.items():
        scores[node] = max(score, scores.get(node, 0.0))
    order = sorted(scores, key=lambda node: (-scores[node], node))
    limit = frame.request.max_nodes or 0
    legs: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("structured", structured.scores),
        ("semantic", semantic.similarities),
        ("lexical", {**play.lexical, **play.fed}),
        ("expansion", play.paths),
    )
    return tuple(
        RecalledNode(
            node_id=node,
            score=scores[node],
            legs=tuple(name for name, found in legs if node in found),
            similarity=semantic.similarities.get(node),
            reached=_reached(play, node, semantic),
            cut=position >= limit,
        )
        for position, node in enumerate(order)
    )


def _reached(play: Play, node: str, semantic: Semantic) -> Reached | None:
    if node not in play.paths:
        return None
    path, confidence = play.paths[node]
    return Reached(len(path) - 1, confidence, path, semantic.similarities.get(node))


def _stats(play: Play, scored: Scored, nodes: tuple[RecalledNode, ...]) -> dict[str, Any]:
    of = dict(zip(scored.nodes, scored.terms.tolist(), strict=True))
    return {
        "lexical": {"terms": len(play.question.terms), "returned": len(play.lexical), "fed": len(play.fed)},
        "links": {"reached": len(play.paths)},
        "weights": play.weights.name,
        "k": play.index.frame.request.k,
        "terms": {
            "names": scored.names,
            "weights": [play.weights.of[name] for name in scored.names],
            "per": play.weights.per,
            "of": {node.node_id: of[node.node_id] for node in nodes if node.node_id in of},
        },
        "bm25": dict(play.lexical),
    }
