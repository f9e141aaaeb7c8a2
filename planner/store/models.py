"""Embedding models, and the vectors of one that a scope is moving to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg import sql

from planner.errors import UnknownScope
from planner.store.arrays import vector_parameters
from planner.store.connect import Connection, by_name, run
from planner.store.queries import compose, query


@dataclass(frozen=True, slots=True)
class MadeVector:
    """The vector of one version of a node; None where the model has embedded the same text before."""

    node_id: str
    node_tx_from: int
    text_hash: bytes
    vector: Sequence[float] | None


def known_model(conn: Connection, name: str, revision: str, dimensions: int) -> int:
    """Return the id of an embedding model, which is made known where it is not yet."""
    named = {"name": name, "revision": revision, "dimensions": dimensions}
    run(conn, "register_model", named)
    row = run(conn, "find_model", named).fetchone()
    assert row is not None
    return int(row[0])


def halt_writers(conn: Connection, scope_id: UUID, name: str) -> int:
    """Keep out the scope's other writers; return its newest transaction. Raises UnknownScope."""
    row = run(conn, "halt_writers", {"scope_id": scope_id}).fetchone()
    if row is None:
        raise UnknownScope(f"no scope {name!r}", scope=name)
    return int(row[0])


def count_pending(conn: Connection, scope_id: UUID, model_id: int) -> int:
    """Return how many current nodes have a text and no current vector of the model."""
    params = {"scope_id": scope_id, "model_id": model_id}
    row = run(conn, compose("reembed_count", pending=_pending()), params).fetchone()
    return int(row[0]) if row else 0


def pending_nodes(
    conn: Connection, scope_id: UUID, model_id: int, *, after: str, limit: int
) -> list[tuple[str, int]]:
    """Return the next `limit` such nodes by id beyond `after`, each with the start of its version."""
    params = {"scope_id": scope_id, "model_id": model_id, "after": after, "limit": limit}
    rows = run(conn, compose("reembed_nodes", pending=_pending()), params)
    return [(node_id, tx_from) for node_id, tx_from in rows]


def write_made(
    conn: Connection, scope_id: UUID, model_id: int, tx: int, vectors: Sequence[MadeVector]
) -> int:
    """Write vectors from `tx` on in a locked scope, passing over what has changed; return how many."""
    if not vectors:
        return 0
    rows = [(v.node_id, v.node_tx_from, v.text_hash) for v in vectors]
    lists = by_name(("node_id", "node_tx_from", "text_hash"), rows)
    made = vector_parameters([v.vector for v in vectors])
    params = {"scope_id": scope_id, "model_id": model_id, "tx": tx, **lists, **made}
    return run(conn, compose("write_reembedded", pending=_pending()), params).rowcount


def _pending() -> sql.Composed:
    return compose("reembed_pending", worded=query("worded"))


def change_model(conn: Connection, scope_id: UUID, tx: int, before: int | None, model_id: int) -> None:
    """Let a scope use another model from `tx` on; the vectors of the one before end there."""
    if before is not None:
        ending = {"scope_id": scope_id, "model_id": before, "tx": tx}
        run(conn, "close_scope_model", ending)
        run(conn, "close_model_vectors", ending)
    run(conn, "adopt_model", {"scope_id": scope_id, "model_id": model_id, "tx": tx})
