"""Writing a batch: one ledger transaction, all of it or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from blake3 import blake3

from planner.errors import ConflictingInput, UnknownScope
from planner.hashing import text_hash
from planner.lexical.terms import ANALYSIS
from planner.store.arrays import vector_parameters
from planner.store.chain import GENESIS, entry_hash
from planner.store.changes import (
    Changes,
    Current,
    CurrentNode,
    CurrentVersion,
    EdgeKey,
    canonical_json,
)
from planner.store.connect import Connection, by_name, run
from planner.types import STRUCTURE, Batch, EdgeDraft, NodeDraft, SourceDraft

MANY_ROWS: Mapping[str, str | int] = MappingProxyType({"plan_cache_mode": "auto", "enable_seqscan": "off"})
"""Settings of a transaction that writes many rows: with them the check of a foreign key is planned once a
session, not once a row, and uses the key's index also where the table was small then. Our own statements,
which have no name, are planned each time as ever."""


@dataclass(frozen=True, slots=True)
class NodeVector:
    """The vector of a node for a text: unit float32 components, or None where the store has one already."""

    node_id: str
    text_hash: bytes
    vector: Sequence[float] | None


class Turn(NamedTuple):
    """A transaction number of a scope, when the scope was made, and what it says of its lexical index."""

    tx: int
    made_at: datetime
    lexical: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """What the ledger says of a transaction."""

    actor: str
    action: str
    recorded_at: datetime
    detail: Mapping[str, Any]


def read_current(conn: Connection, scope_id: UUID, batch: Batch, *, last_tx: int) -> Current:
    """Read what is current of everything the batch may touch."""
    params = {
        "scope_id": scope_id,
        "sources": [source.source_id for source in batch.sources],
        "nodes": [node.node_id for node in batch.nodes],
    }
    found = run(conn, "current_versions", params).fetchall()
    whole = whole_texts(conn, scope_id, [row[0] for row in found if row[10] and not row[9]])
    versions = {
        row[0]: CurrentVersion(
            version_tx=row[1],
            content=whole.get(row[0], (row[2], row[3])),
            metadata=(row[4], row[5], row[6], canonical_json(row[7]), row[8], tuple(row[15])),
            identity=tuple(row[11:15]),
            ended=row[9],
        )
        for row in found
    }
    nodes = {
        row[0]: CurrentNode((*row[2:4], canonical_json(row[4]), *row[5:9], tuple(row[9] or ())), row[10])
        for row in run(conn, "current_nodes", params).fetchall()
    }
    touched = sorted({*nodes, *(edge.src for edge in batch.edges)})
    edges = {
        (row[0], row[1], row[2]): (row[3], row[4], row[5])
        for row in run(conn, "current_edges", {"scope_id": scope_id, "nodes": touched}).fetchall()
    }
    return Current(last_tx, versions, nodes, edges)


def whole_texts(
    conn: Connection, scope_id: UUID, sources: Sequence[str]
) -> dict[str, tuple[bytes, str | None]]:
    """Return the hash of each source's whole text, over all versions of its newest chain, and their parser.

    The parser is None where the versions were not read by the same one.
    """
    if not sources:
        return {}
    hashers: dict[str, Any] = {}
    parsers: dict[str, set[str]] = {}
    for source_id, body, parser in run(conn, "chain_texts", {"scope_id": scope_id, "sources": list(sources)}):
        hashers.setdefault(source_id, blake3()).update(body)
        parsers.setdefault(source_id, set()).add(parser)
    return {
        source_id: (hasher.digest(), parsers[source_id].pop() if len(parsers[source_id]) == 1 else None)
        for source_id, hasher in hashers.items()
    }


def check_edge_ends(conn: Connection, scope_id: UUID, batch: Batch) -> None:
    """Raise ConflictingInput where an edge of an imported graph ends at a node that does not exist.

    The edges of parsing itself may point to a source that has not arrived: their end is its node's id.
    """
    own = {node.node_id for node in batch.nodes}
    brought = [edge for edge in batch.edges if edge.predicate not in STRUCTURE]
    ends = sorted({end for edge in brought for end in (edge.src, edge.dst)} - own)
    if not ends:
        return
    found = {
        row[0] for row in run(conn, "current_node_ids", {"scope_id": scope_id, "nodes": ends}).fetchall()
    }
    missing = [end for end in ends if end not in found]
    if missing:
        raise ConflictingInput(
            f"an edge ends at {missing[0]!r}, which is neither in the input nor a current node",
            node_id=missing[0],
        )


def next_tx(conn: Connection, scope_id: UUID, name: str, now: datetime) -> int:
    """Take the scope's next transaction number, which locks out its other writers until the end."""
    return next_turn(conn, scope_id, name, now).tx


def next_turn(conn: Connection, scope_id: UUID, name: str, now: datetime) -> Turn:
    """Take the number, and return with it when the scope was made: another may have taken its name since."""
    params = {"scope_id": scope_id, "name": name, "now": now, "analysis": ANALYSIS}
    row = run(conn, "next_tx", params).fetchone()
    assert row is not None
    return Turn(*row)


def hold_scope(conn: Connection, scope_id: UUID, name: str) -> None:
    """Keep a scope from being deleted until the end of the transaction. Raises UnknownScope.

    Its writers are not kept out by this, nor is this kept waiting by them.
    """
    if run(conn, "hold_scope", {"scope_id": scope_id}).fetchone() is None:
        raise UnknownScope(f"scope {name!r} is not there any more: it was deleted meanwhile", scope=name)


def write_entry(conn: Connection, scope_id: UUID, tx: int, entry: Entry) -> None:
    """Append the ledger entry of this transaction, chained to the one before."""
    row = run(conn, "last_entry_hash", {"scope_id": scope_id, "tx": tx}).fetchone()
    detail = canonical_json(entry.detail)
    chained = entry_hash(
        bytes(row[0]) if row else GENESIS,
        scope_id=scope_id,
        tx=tx,
        recorded_at=entry.recorded_at,
        actor=entry.actor,
        action=entry.action,
        detail=detail,
    )
    params = {
        "scope_id": scope_id,
        "tx": tx,
        "now": entry.recorded_at,
        "actor": entry.actor,
        "action": entry.action,
        "detail": detail,
        "entry_hash": chained,
    }
    run(conn, "write_ledger", params)


def write_changes(
    conn: Connection,
    scope_id: UUID,
    tx: int,
    actor: str,
    found: Changes,
    versions: Mapping[str, CurrentVersion],
) -> None:
    """Write sources, spans, nodes and edges of one transaction; the ledger entry is already there."""
    base = {"scope_id": scope_id, "tx": tx}
    version_of = {source_id: version.version_tx for source_id, version in versions.items()}
    version_of |= {source.source_id: tx for source in found.sources}
    close_edges(conn, scope_id, tx, found.closed_edges)
    closing = sorted(found.gone | found.replaced)
    if closing:
        run(conn, "close_nodes", {**base, "nodes": closing})
    if found.sources:
        run(conn, "write_sources", {**base, **_sources(found.sources)})
        run(conn, "write_versions", {**base, "actor": actor, **_versions(found.sources)})
        run(conn, "write_spans", {**base, **_spans(found.sources)})
    if any(source.made_from for source in found.sources):
        run(conn, "write_derivations", {**base, **_derivations(found.sources)})
    if found.opened:
        run(conn, "write_nodes", {**base, **_nodes(found.opened)})
        run(conn, "write_node_spans", {**base, **_node_spans(found.opened, version_of)})
    write_edges(conn, scope_id, tx, found.edges)
    delta = len(found.opened) - len(closing)
    run(conn, "count_live", {"scope_id": scope_id, "delta": delta})


def close_edges(conn: Connection, scope_id: UUID, tx: int, keys: Sequence[EdgeKey]) -> None:
    """End current edges."""
    if keys:
        named = by_name(("src", "dst", "predicate"), keys)
        run(conn, "close_edges", {"scope_id": scope_id, "tx": tx, **named})


def write_edges(conn: Connection, scope_id: UUID, tx: int, edges: Sequence[EdgeDraft]) -> None:
    """Write new edges."""
    if edges:
        run(conn, "write_edges", {"scope_id": scope_id, "tx": tx, **_edges(edges)})


def write_embeddings(
    conn: Connection,
    scope_id: UUID,
    tx: int,
    model_id: int,
    vectors: Sequence[NodeVector],
    closing: Sequence[str],
) -> None:
    """Close the vectors of `closing` nodes and write the new ones."""
    base = {"scope_id": scope_id, "tx": tx}
    if closing:
        run(conn, "close_embeddings", {**base, "nodes": sorted(closing)})
    if vectors:
        named = by_name(("node_id", "text_hash"), [(v.node_id, v.text_hash) for v in vectors])
        made = vector_parameters([v.vector for v in vectors])
        run(conn, "write_embeddings", {**base, "model_id": model_id, **named, **made})


def _sources(sources: Sequence[SourceDraft]) -> dict[str, list[Any]]:
    rows = [(s.source_id, s.media_type, s.source_class, s.conversation_id, s.position) for s in sources]
    return by_name(("source_id", "media_type", "class", "conversation_id", "position"), rows)


def _versions(sources: Sequence[SourceDraft]) -> dict[str, list[Any]]:
    names = ("source_id", "body", "byte_length", "text_hash", "parser_version", "title", "uri", "trust")
    rows = [
        (
            s.source_id,
            s.text,
            len(s.text),
            text_hash(s.text),
            s.parser_version,
            s.title,
            s.uri,
            s.trust,
            canonical_json(s.attributes),
            s.observed_at,
            s.extends_tx,
        )
        for s in sources
    ]
    return by_name((*names, "attributes", "observed_at", "extends_tx"), rows)


def _spans(sources: Sequence[SourceDraft]) -> dict[str, list[Any]]:
    names = ("source_id", "start", "end", "kind", "ordinal", "heading_path", "speaker", "ascii_bytes")
    rows = [
        (
            source.source_id,
            span.start,
            span.end,
            span.kind,
            span.ordinal,
            canonical_json(span.heading_path),
            span.speaker,
            span.ascii_bytes,
            span.non_ascii_chars,
            span.text_hash,
            span.message_id,
        )
        for source in sources
        for span in source.spans
    ]
    return by_name((*names, "non_ascii_chars", "text_hash", "message_id"), rows)


def _derivations(sources: Sequence[SourceDraft]) -> dict[str, list[Any]]:
    rows = [(source.source_id, *ref) for source in sources for ref in source.made_from]
    return by_name(("source_id", "from_source_id", "from_version_tx", "from_start", "from_end"), rows)


def _nodes(nodes: Sequence[NodeDraft]) -> dict[str, list[Any]]:
    names = ("node_id", "kind", "label", "attributes", "confidence", "valid_from", "valid_to", "observed_at")
    rows = [
        (
            node.node_id,
            node.kind,
            node.label,
            canonical_json(node.attributes),
            node.confidence,
            node.valid_from,
            node.valid_to,
            node.observed_at,
        )
        for node in nodes
    ]
    return by_name(names, rows)


def _node_spans(nodes: Sequence[NodeDraft], version_of: Mapping[str, int]) -> dict[str, list[Any]]:
    rows = [
        (node.node_id, source_id, version_of[source_id], start, end)
        for node in nodes
        for source_id, start, end in node.spans
    ]
    return by_name(("node_id", "source_id", "version_tx", "start", "end"), rows)


def _edges(edges: Sequence[EdgeDraft]) -> dict[str, list[Any]]:
    names = ("src", "dst", "predicate", "confidence", "valid_from", "valid_to")
    rows = [(e.src, e.dst, e.predicate, e.confidence, e.valid_from, e.valid_to) for e in edges]
    return by_name(names, rows)
