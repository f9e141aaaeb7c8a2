"""The expansion leg: 1–2 hops from the best roots. S(n) = fuse(sim, decay, alpha), or decay alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from psycopg import sql

from planner.recall.frame import Frame
from planner.recall.score import fuse, similarities
from planner.recall.semantic import vectors_of
from planner.store.connect import Connection, run
from planner.store.queries import compose, query
from planner.types import Reached, SourceClass, SpanRef


class Provenance(NamedTuple):
    """One span of one node in play, with its row of the span ledger (`kind` None where there is none).

    A cache is `stale` where something that it was made from had changed, or was withdrawn or erased, as of
    the plan.
    """

    node_id: str
    source_id: str
    version_tx: int
    start: int
    end: int
    kind: str | None
    source_class: SourceClass
    ascii_bytes: int
    non_ascii_chars: int
    text_hash: bytes | None
    byte_length: int
    erased: bool
    stale: bool

    @property
    def ref(self) -> SpanRef:
        """The span's key."""
        return SpanRef(self.source_id, self.version_tx, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Expansion:
    """What the walk reached, by node, and the provenance of every node in play."""

    reached: dict[str, Reached]
    provenance: list[Provenance]

    def score(self, node_id: str, alpha: float) -> float:
        """Return S(n) by this leg."""
        node = self.reached[node_id]
        return node.decay if node.similarity is None else fuse(node.similarity, node.decay, alpha)


def expand(
    conn: Connection, frame: Frame, roots: Sequence[str], known: Sequence[str], similar: dict[str, float]
) -> Expansion:
    """Run the second statement of recall from `roots`; `known` are all nodes that the first one found."""
    params = {
        **frame.params,
        "roots": list(roots),
        "known": list(known),
        "similar": list(similar),
        "hops": frame.request.hops,
        "fanout": frame.request.fanout,
        "hop_decay": frame.settings.hop_decay,
    }
    statement = compose("expand", edges=edges(frame), provenance=provenance())
    rows = run(conn, statement, params).fetchall()
    walked = {row[0]: row for row in rows if row[1] is not None}
    fresh = [node_id for node_id, row in walked.items() if row[4] is not None]
    dimensions = frame.state.model.dimensions if frame.state.model else 0
    sims = similarities(vectors_of([walked[n][4] for n in fresh], dimensions), frame.queries)
    has_question = len(frame.queries) > 0
    known_sims = {**similar, **(dict(zip(fresh, sims.tolist(), strict=True)) if has_question else {})}
    reached = {
        node_id: Reached(row[1], row[2], tuple(row[3]), known_sims.get(node_id))
        for node_id, row in walked.items()
    }
    return Expansion(reached, [Provenance(row[0], *row[5:]) for row in rows if row[5] is not None])


def provenance() -> sql.Composed:
    """Return the joins from a node `n` to its spans, their sources and the span ledger."""
    return compose("provenance", stale=query("stale_derivation"))


def edges(frame: Frame) -> sql.Composed:
    """Return the arms of the walk, one a direction, inside the restriction."""
    wanted = {"both": ("edges_out", "edges_in"), "out": ("edges_out",), "in": ("edges_in",)}
    arms = [compose(name, restriction=frame.restriction) for name in wanted[frame.request.direction]]
    return sql.SQL(" UNION ALL ").join(arms)
