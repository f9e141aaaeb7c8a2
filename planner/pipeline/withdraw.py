"""Withdrawal: sources whose files vanished are no longer current; their texts and their past stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from psycopg import Rollback

from planner.engine import Engine
from planner.ingest import scope_id as id_of_scope
from planner.ingest import source_node_id
from planner.pipeline.ingest import Ingested
from planner.store.changes import Changes
from planner.store.connect import Connection, run
from planner.store.lexical import NOTHING, close_rows, count
from planner.store.mentions import change_mentions, end_titles, write_mentions
from planner.store.retry import retried
from planner.store.write import Entry, next_tx, write_changes, write_embeddings, write_entry
from planner.types import IngestedSource


@retried
def withdraw_vanished(
    engine: Engine, scope: str, *, folders: Collection[str], files: Collection[str], kept: Collection[str]
) -> Ingested:
    """Withdraw the sources that came from a file below one of `folders` which is not among `files`.

    `folders` are names, `files` paths below them, `kept` ids of sources that were just ingested, from
    whichever file. One ledger transaction for all; nothing where nothing vanished. Raises StoreError.
    """
    scope_id = id_of_scope(scope)
    params = {
        "scope_id": scope_id,
        "folders": sorted(folders),
        "files": sorted(files),
        "kept": sorted(kept),
    }
    with engine.store.scoped(scope_id, "reader") as conn:
        if run(conn, "vanished_sources", params).fetchone() is None:
            return Ingested(())
    gone: list[tuple[str, int]] = []
    with engine.store.scoped(scope_id, "writer") as conn:
        tx = next_tx(conn, scope_id, scope, engine.clock())
        gone = run(conn, "vanished_sources", params).fetchall()
        if not gone:
            raise Rollback
        sources = [source_id for source_id, _ in gone]
        closed = changes_of_end(conn, scope_id, derived_nodes(conn, scope_id, sources))
        detail = {
            "sources": sources,
            "nodes_closed": len(closed.gone),
            "edges_closed": len(closed.closed_edges),
        }
        write_entry(conn, scope_id, tx, Entry(engine.actor, "withdraw", engine.clock(), detail))
        end(conn, scope_id, tx, closed, sources)
        versions = [version_tx for _, version_tx in gone]
        marked = {"scope_id": scope_id, "tx": tx, "sources": sources, "versions": versions}
        run(conn, "withdraw_versions", marked)
    return Ingested(tuple(IngestedSource(source_id, "withdrawn", tx, 0) for source_id, tx in gone))


def changes_of_end(conn: Connection, scope_id: UUID, derived: Sequence[tuple[str, bool]]) -> Changes:
    """Return what ends with sources: the current ones of the nodes that derive from them, and their edges.

    A link may go on pointing to what has ended, as it may point to what has not arrived.
    """
    nodes = frozenset(node for node, is_current in derived if is_current)
    edges = run(conn, "current_edges", {"scope_id": scope_id, "nodes": sorted(nodes)}).fetchall()
    closed = tuple(
        (src, dst, predicate)
        for src, dst, predicate, *_ in edges
        if src in nodes or (dst in nodes and predicate != "links_to")
    )
    return Changes((), (), frozenset(), nodes, (), closed)


def derived_nodes(conn: Connection, scope_id: UUID, sources: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the nodes that derive from sources, now or ever, or stand for them; and whether now."""
    params = {"scope_id": scope_id, "sources": list(sources), "source_nodes": source_nodes(sources)}
    return [(node, is_current) for node, is_current in run(conn, "derived_nodes", params).fetchall()]


def source_nodes(sources: Sequence[str]) -> list[str]:
    """Return the ids of the nodes that stand for sources themselves."""
    return [source_node_id(source_id) for source_id in sources]


def end(conn: Connection, scope_id: UUID, tx: int, closed: Changes, sources: Sequence[str]) -> None:
    """Close nodes with their edges, vectors and index rows, and titles; the ledger entry is already there."""
    with conn.pipeline():
        write_changes(conn, scope_id, tx, "", closed, {})
        write_embeddings(conn, scope_id, tx, 0, [], sorted(closed.gone))
        count(conn, scope_id, NOTHING, close_rows(conn, scope_id, tx, closed.gone))
        end_titles(conn, scope_id, tx, sources)
        edges = change_mentions(conn, scope_id, (), nodes=closed.gone, targets=closed.gone)
        write_mentions(conn, scope_id, tx, edges)
