"""Erasure (store.md, "Erasure"): what a source said goes, in one transaction; what plans decided stays.

The rows that held it are dead then, but their bytes are in the tables' files until these are written anew:
`scrub` does that.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Rollback, sql
from psycopg.errors import Diagnostic

from planner.engine import Engine
from planner.errors import UnknownSource
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.browse import storable
from planner.pipeline.withdraw import changes_of_end, derived_nodes, end, source_nodes
from planner.recall.frame import read_state
from planner.store.connect import Connection, run
from planner.store.lexical import erase_rows
from planner.store.queries import compose
from planner.store.retry import retried
from planner.store.schema import WORDS, token_count
from planner.store.write import Entry, next_tx, write_entry

SCRUBBED = (*(table.name for table in WORDS), token_count.name)
"""The tables that hold what a source says, or were counted from it."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased: the source, the caches made from it, and the rows emptied or deleted.

    `tx` is None where there was nothing left to erase. `held_back` is None without a scrub, else the number
    of dead rows that had to stay because another transaction can still see them: 0 is a clean scrub.
    """

    scope: str
    source: str
    tx: int | None
    sources: tuple[str, ...]
    versions: int = 0
    nodes: int = 0
    vectors: int = 0
    counts: int = 0
    held_back: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return asdict(self)


@retried
def erase(engine: Engine, scope: str, source_id: str) -> Erased:
    """Erase a source with all its versions, and the caches made from it, in one ledger transaction.

    Canonical texts, titles, uris, attributes, heading paths, speakers, message ids, labels, vectors, terms
    and cached counts go; nodes end. Raises UnknownScope, UnknownSource, RequestError, StoreError.
    """
    scope_id = id_of_scope(scope)
    storable(source_id, "source")
    with engine.store.scoped(scope_id, "reader") as conn:
        read_state(conn, scope, scope_id, None)
        found = _erasable(conn, scope, scope_id, source_id)
    erased = Erased(scope, source_id, None, tuple(found))
    if any(found.values()):
        with engine.store.scoped(scope_id, "writer") as conn:
            tx = next_tx(conn, scope_id, scope, engine.clock())
            found = _erasable(conn, scope, scope_id, source_id)
            if not any(found.values()):  # somebody else was first
                raise Rollback
            erased = _erase(conn, engine, scope_id, replace(erased, tx=tx, sources=tuple(found)))
    # A plan that was traced while this was committed may have cached counts of what it had read. The scope is
    # locked again, so that two erasures do not delete the same counts at once.
    with engine.store.scoped(scope_id, "writer") as conn:
        run(conn, "halt_writers", {"scope_id": scope_id})
        late = run(conn, "erase_counts", {"scope_id": scope_id, "sources": list(erased.sources)}).rowcount
    return replace(erased, counts=erased.counts + late)


def _erasable(conn: Connection, scope: str, scope_id: UUID, source_id: str) -> dict[str, int]:
    """Return the source and its caches, each with its number of versions that have their text."""
    rows = run(conn, "erasable", {"scope_id": scope_id, "source_id": source_id}).fetchall()
    if not rows:
        raise UnknownSource(f"no source {source_id!r} in scope {scope!r}", source=source_id)
    return dict(rows)


@retried
def scrub(engine: Engine) -> int:
    """Write the tables that hold sources anew; return how many dead rows had to stay.

    Locks each table in turn against everything while it is copied, and needs as much free disk. Rows stay
    where a transaction that began before they died is still open, here or on a replica that sends feedback.
    """
    kept: list[int] = []

    def notice(diagnostic: Diagnostic) -> None:
        # VACUUM's own words are translated; the number that the detail begins with is not.
        number = re.match(r"\D*?(\d+)", diagnostic.message_detail or "")
        kept.append(int(number[1]) if number else 0)

    tables = sql.SQL(", ").join(sql.Identifier("planner", name) for name in SCRUBBED)
    with engine.store.upkeep() as conn:
        conn.add_notice_handler(notice)
        try:
            run(conn, compose("scrub", tables=tables))
        finally:
            conn.remove_notice_handler(notice)
    return sum(kept)


def _erase(conn: Connection, engine: Engine, scope_id: UUID, erased: Erased) -> Erased:
    sources, tx = list(erased.sources), erased.tx or 0
    derived = derived_nodes(conn, scope_id, sources)
    nodes = [node for node, _ in derived]
    params: dict[str, Any] = {"scope_id": scope_id, "tx": tx, "sources": sources, "nodes": nodes}
    params["source_nodes"] = source_nodes(sources)
    closed = changes_of_end(conn, scope_id, derived)
    detail = {"sources": sources, "nodes_closed": len(closed.gone), "edges_closed": len(closed.closed_edges)}
    write_entry(conn, scope_id, tx, Entry(engine.actor, "erase", engine.clock(), detail))
    end(conn, scope_id, tx, closed, sources)
    run(conn, "erase_spans", params)
    run(conn, "erase_titles", params)
    erase_rows(conn, scope_id, nodes, sources)
    return replace(
        erased,
        versions=run(conn, "erase_versions", params).rowcount,
        nodes=run(conn, "erase_nodes", params).rowcount,
        vectors=run(conn, "erase_embeddings", params).rowcount,
        counts=run(conn, "erase_counts", params).rowcount,
    )
