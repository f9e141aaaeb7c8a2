"""The semantic leg: the k nearest by exact cosine inside the restricted universe. S(n) = fuse(sim, 1, alpha).

SQL finds candidates by pgvector's distance, whose last bits depend on the processor; the order is decided
here, on integers. Where rounding in SQL could have kept a node out, more are fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from psycopg import sql

from planner.recall import structured
from planner.recall.frame import MAX_HALFVEC_INDEX, MAX_VECTOR_INDEX, Frame, Vectors
from planner.recall.score import NO_DECAY, Floats, fuse, rounding_slack, similarities, top_k
from planner.store.connect import Connection, run
from planner.store.local import set_local
from planner.store.queries import compose

MAX_ANN_FETCH = 1_000


@dataclass(frozen=True, slots=True)
class Semantic:
    """What the leg found: similarity by node, for the k best; and how the search went."""

    similarities: dict[str, float]
    asked: int
    returned: int
    rounds: int

    def score(self, node_id: str, alpha: float) -> float:
        """Return S(n) of a node that the leg found."""
        return fuse(self.similarities[node_id], NO_DECAY, alpha)


def nearest(conn: Connection, frame: Frame) -> tuple[Semantic, structured.Structured]:
    """Run the first statement of recall: both legs that start from the request itself."""
    k = frame.request.k or 0
    asked = k + frame.settings.margin
    statement, rounds = _statement(frame), 0
    set_local(conn, search_settings(frame))
    while True:
        rounds += 1
        params = {
            **frame.params,
            **structured.params(frame),
            "queries": _literals(frame.queries),
            "fetch": asked,
        }
        rows = run(conn, statement, params).fetchall()
        found = [row for row in rows if row[0] == "semantic"]
        node_ids, sims = _exact(frame, found)
        if frame.method == "ann" or _settled(frame, found, sims, asked, k):
            break
        asked *= 2
    if frame.method == "ann":
        set_local(conn, {"enable_sort": "on"})
    best = {node_ids[i]: float(sims[i]) for i in top_k(node_ids, sims, k)}
    others = structured.read(frame, (row[:2] for row in rows if row[0] != "semantic"))
    return Semantic(best, asked, len(node_ids), rounds), others


def vectors_of(raw: Sequence[bytes], dimensions: int) -> Vectors:
    """Read pgvector's binary format: int16 dimensions, int16 unused, then big-endian float32 values."""
    joined = b"".join([value[4:] for value in raw])
    return np.frombuffer(joined, dtype=">f4").astype(np.float32).reshape(len(raw), dimensions)


def distance(frame: Frame) -> sql.Composable:
    """Return the distance expression; an index is typed, so its dimensions enter as a checked integer."""
    model = frame.state.model
    if frame.method == "exact" or model is None:
        return sql.SQL("(e.vec <=> q.vec)")
    kind = index_type(model.dimensions)
    return sql.SQL("(e.vec::{kind}({d}) <=> q.vec::{kind}({d}))").format(
        kind=sql.Identifier(kind), d=sql.Literal(model.dimensions)
    )


def index_type(dimensions: int) -> str:
    """Return the type under which vectors of these dimensions can be indexed, `""` where none can."""
    if dimensions <= MAX_VECTOR_INDEX:
        return "vector"
    return "halfvec" if dimensions <= MAX_HALFVEC_INDEX else ""


def restriction(frame: Frame) -> sql.Composable:
    """Return what bounds the leg's universe, on `e`."""
    if not frame.restricted:
        return sql.SQL("true")
    return compose("restrict_embedding", restriction=frame.restriction)


def search_settings(frame: Frame) -> dict[str, str | int]:
    """Return the `SET LOCAL` values of the search.

    HNSW returned 40 of 96 rows without its own. Without a sort only the index is left to give the order; else
    PostgreSQL reads every vector and sorts them, where k is large or it takes the scope for small.
    """
    if frame.method == "exact":
        return {}
    fetch = min(MAX_ANN_FETCH, (frame.request.k or 0) + frame.settings.margin)
    return {"hnsw.iterative_scan": "strict_order", "hnsw.ef_search": fetch, "enable_sort": "off"}


def _statement(frame: Frame) -> sql.Composed:
    open_only = "e.tx_to = 9223372036854775807"
    as_of = "e.tx_from <= %(as_of)s AND e.tx_to > %(as_of)s"
    return compose(
        "nearest",
        distance=distance(frame),
        current=sql.SQL(open_only if frame.state.newest else as_of),
        restriction=restriction(frame),
        structured=structured.fragment(frame),
    )


def _literals(queries: Vectors) -> list[str]:
    return ["[" + ",".join(map(str, row)) + "]" for row in queries.tolist()]


def _exact(frame: Frame, rows: Sequence[tuple[Any, ...]]) -> tuple[list[str], Floats]:
    raw = {row[1]: row[4] for row in rows}
    dimensions = frame.state.model.dimensions if frame.state.model else 0
    return list(raw), similarities(vectors_of(list(raw.values()), dimensions), frame.queries)


def _settled(frame: Frame, rows: Sequence[tuple[Any, ...]], sims: Floats, asked: int, k: int) -> bool:
    """Say whether no node that was not fetched could belong to the k best, however SQL rounded."""
    farthest: dict[int, list[float]] = {}
    for row in rows:
        farthest.setdefault(row[2], []).append(row[3])
    unfinished = [max(distances) for distances in farthest.values() if len(distances) >= asked]
    if not unfinished:
        return True
    kth = float(np.sort(sims)[-k]) if len(sims) >= k else -1.0
    model = frame.state.model
    slack = rounding_slack(model.dimensions if model else 0)
    # Similarity is cut at 0: what lies behind the question ties with everything else that does.
    return all(max(0.0, 1.0 - distance + slack) < kth for distance in unfinished)
