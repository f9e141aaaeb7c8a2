"""The links of the best nodes: titles they name, texts that name their source, edges of the caller's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from psycopg import sql

from planner.recall.frame import Frame
from planner.recall.v2.features import Hit
from planner.recall.v2.lexical import edges_at
from planner.store.connect import Connection, run
from planner.store.queries import compose

MENTIONS = 64
"""How many mentions of one node are looked at, each way."""

GROWTH = 16
"""How many of them bring nodes into the pool."""

OPENINGS = 3
"""How many nodes of a mentioned source come into the pool, its first ones."""

Path = tuple[str, ...]


@dataclass
class Followed:
    """Where the links of the hits lead; `paths` are the nodes that they bring, by the way to each."""

    named: dict[str, dict[str, int]] = field(default_factory=dict)
    edges: dict[str, dict[str, float]] = field(default_factory=dict)
    paths: dict[str, tuple[Path, float]] = field(default_factory=dict)

    def bring(self, node_id: str, path: Path, confidence: float) -> None:
        """Have a node in the pool; the first way to it counts."""
        self.paths.setdefault(node_id, (path, confidence))


def follow(conn: Connection, frame: Frame, hits: Sequence[Hit], source_of: Mapping[str, str]) -> Followed:
    """Follow the links of the hits; `source_of` are the nodes of their sources. Nothing where `hops` is 0."""
    found = Followed({h.node_id: {} for h in hits}, {h.node_id: {} for h in hits})
    if not frame.request.hops or not hits:
        return found
    params = {
        **frame.params,
        "hits": [hit.node_id for hit in hits],
        "named": [source_of.get(hit.node_id, "") for hit in hits],
        "links": MENTIONS,
        "fanout": frame.request.fanout,
        "outwards": frame.request.direction != "in",
        "inwards": frame.request.direction != "out",
    }
    opened: dict[str, list[str]] = {}
    mentioned: dict[str, list[str]] = {}
    rows = sorted(run(conn, _statement(), params).fetchall(), key=lambda row: (row[0], -row[3], row[2]))
    for link, hit, other, confidence, times in rows:
        if link == "mentions":
            found.named[hit][other] = times
            opened.setdefault(hit, []).append(other)
        elif link == "mentioned":
            mentioned.setdefault(hit, []).append(other)
        else:
            found.edges[hit][other] = max(confidence, found.edges[hit].get(other, 0.0))
    _grow(conn, frame, hits, found, opened, mentioned)
    return found


def _statement() -> sql.Composed:
    return compose(
        "links",
        outgoing=edges_at("outgoing", 'h.node_id COLLATE "C"'),
        incoming=edges_at("incoming", 'h.node_id COLLATE "C"'),
        to_source=edges_at("incoming", 'h.source COLLATE "C"'),
        naming=edges_at("incoming", "near.dst"),
    )


def _grow(
    conn: Connection,
    frame: Frame,
    hits: Sequence[Hit],
    found: Followed,
    opened: Mapping[str, Sequence[str]],
    mentioned: Mapping[str, Sequence[str]],
) -> None:
    sources = sorted({source for others in opened.values() for source in others[:GROWTH]})
    first: dict[str, list[str]] = {}
    if sources:
        statement = compose(
            "openings",
            restriction=frame.restriction,
            incoming=edges_at("incoming", 'w.node_id COLLATE "C"'),
        )
        params = {**frame.params, "sources": sources, "openings": OPENINGS}
        for source, node_id in run(conn, statement, params):
            first.setdefault(source, []).append(node_id)
    for hit, _ in hits:
        for source in opened.get(hit, ())[:GROWTH]:
            for node_id in first.get(source, ()):
                found.bring(node_id, (hit, source, node_id), 1.0)
        for node_id in mentioned.get(hit, ())[:GROWTH]:
            found.bring(node_id, (hit, node_id), 1.0)
        for node_id, confidence in sorted(found.edges[hit].items()):
            found.bring(node_id, (hit, node_id), confidence)
