"""Retention: the versions of a source, deleting old ones, and deleting a whole scope. As the owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg import Rollback, sql

from planner.engine import Engine
from planner.errors import RequestError, UnknownSource
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.browse import storable
from planner.recall.frame import read_state
from planner.store.connect import Connection, run
from planner.store.lexical import prune_rows
from planner.store.models import halt_writers
from planner.store.queries import compose
from planner.store.retry import retried
from planner.store.write import Entry, next_tx, write_entry

Reason = Literal["newest", "current", "derived", "cited"]


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """One version of a source: what wrote it when, what became of it, and what keeps it from being pruned.

    A version with `extends_tx` holds only what follows that version. `current`: a current node derives from
    it; `derived`: a cache was made from it; `cited`: how many spans of it kept plans selected.
    """

    version_tx: int
    recorded_at: datetime
    actor: str
    action: str
    title: str | None
    byte_length: int
    text_hash: bytes
    parser_version: str
    extends_tx: int | None
    erased_tx: int | None
    withdrawn_tx: int | None
    spans: int
    current: bool
    derived: bool
    cited: int

    def to_dict(self) -> dict[str, Any]:
        """Return the version as JSON data."""
        return {
            **asdict(self),
            "recorded_at": self.recorded_at.isoformat(),
            "text_hash": self.text_hash.hex(),
        }


@dataclass(frozen=True, slots=True)
class PrunedVersions:
    """Which versions were deleted, and which were kept for what reason; `tx` is None where none was."""

    scope: str
    source: str
    tx: int | None
    deleted: tuple[int, ...]
    kept: tuple[tuple[int, Reason], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        kept = [{"version_tx": version_tx, "reason": reason} for version_tx, reason in self.kept]
        return {**asdict(self), "deleted": list(self.deleted), "kept": kept}


@dataclass(frozen=True, slots=True)
class DeletedScope:
    """How much was deleted with a scope."""

    scope: str
    sources: int
    versions: int
    nodes: int
    plans: int
    tokens: int
    indexes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {**asdict(self), "indexes": list(self.indexes)}


@retried
def versions(engine: Engine, scope: str, source_id: str) -> tuple[SourceVersion, ...]:
    """Return every version of a source, oldest first. Raises UnknownScope, UnknownSource, RequestError."""
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        return _versions(conn, scope, scope_id, source_id)


@retried
def prune(
    engine: Engine, scope: str, source_id: str, *, keep_versions: int, even_cited: bool = False
) -> PrunedVersions:
    """Delete all but the newest versions of a source, in one ledger transaction.

    A version that was extended counts as one with what extends it. Kept beside the newest: what a current
    node derives from, what a cache was made from, and, unless `even_cited`, what a kept plan selected a span
    of. A plan as of an earlier transaction misses what is gone. Raises UnknownScope, UnknownSource,
    RequestError.
    """
    if keep_versions < 1:
        raise RequestError(
            f"keep_versions = {keep_versions}: at least 1 version stays; to remove a source, erase it",
            field="keep_versions",
        )
    scope_id = id_of_scope(scope)
    done = PrunedVersions(scope, source_id, None, (), ())
    with engine.store.maintenance() as conn:
        read_state(conn, scope, scope_id, None)
        tx = next_tx(conn, scope_id, scope, engine.clock())
        found = _versions(conn, scope, scope_id, source_id)
        reasons = _reasons(found, keep_versions, even_cited)
        kept = tuple((version_tx, reason) for version_tx, reason in reasons.items() if reason is not None)
        deleted = tuple(version_tx for version_tx, reason in reasons.items() if reason is None)
        done = PrunedVersions(scope, source_id, tx if deleted else None, deleted, kept)
        if not deleted:
            raise Rollback
        detail = {"sources": [source_id], "versions": list(deleted)}
        write_entry(conn, scope_id, tx, Entry(engine.actor, "prune", engine.clock(), detail))
        _delete(conn, {"scope_id": scope_id, "source_id": source_id, "versions": list(deleted)})
    return done


def delete_scope(engine: Engine, scope: str) -> DeletedScope:
    """Delete a scope with its sources, its ledger, its traces, its tokens and its vector indexes.

    Two transactions: the first empties the scope, the second ends it, with what came in between. Where the
    second is lost, an empty scope stays, to be deleted again. Raises UnknownScope, StoreError.
    """
    scope_id = id_of_scope(scope)
    sources, versions, nodes, plans, tokens = _emptied(engine, scope, scope_id)
    _vacuumed(engine)
    _ended(engine, scope_id)
    indexes = _without_indexes(engine, scope_id)
    return DeletedScope(scope, sources, versions, nodes, plans, tokens, indexes)


@retried
def _emptied(engine: Engine, scope: str, scope_id: UUID) -> tuple[int, ...]:
    """Delete what a scope holds, as a transaction of its ledger; return how much. Raises UnknownScope.

    Writers that come before the end find that the scope has changed, and plans go on being traced.
    """
    params = {"scope_id": scope_id}
    with engine.store.maintenance({"statement_timeout": 0}) as conn:
        halt_writers(conn, scope_id, scope)
        live_nodes = read_state(conn, scope, scope_id, None).live_nodes
        tx = next_tx(conn, scope_id, scope, engine.clock())
        write_entry(conn, scope_id, tx, Entry(engine.actor, "delete", engine.clock(), {}))
        row = run(conn, "empty_scope", params).fetchone()
        run(conn, "count_live", {**params, "delta": -live_nodes})
        run(conn, "empty_lexical", params)
        assert row is not None
        return row


@retried
def _vacuumed(engine: Engine) -> None:
    with engine.store.upkeep(alone=False) as conn:
        run(conn, "vacuum_versions")


@retried
def _ended(engine: Engine, scope_id: UUID) -> None:
    """Delete a scope with what it holds again; where it is gone, an attempt whose answer was lost did it."""
    params = {"scope_id": scope_id}
    with engine.store.maintenance({"statement_timeout": 0}) as conn:
        for statement in ("lock_scope", "empty_scope", "delete_scope"):
            run(conn, statement, params)


@retried
def _without_indexes(engine: Engine, scope_id: UUID) -> tuple[str, ...]:
    """Drop the vector indexes of a scope that is gone; return their names."""
    with engine.store.maintenance() as conn:
        rows = run(conn, "scope_indexes", {"prefix": f"embedding_hnsw_{scope_id.hex}_"}).fetchall()
    if rows:
        with engine.store.upkeep() as conn:
            for (name,) in rows:
                run(conn, compose("drop_vector_index", name=sql.Identifier(name)))
    return tuple(name for (name,) in rows)


def _versions(conn: Connection, scope: str, scope_id: UUID, source_id: str) -> tuple[SourceVersion, ...]:
    params = {"scope_id": scope_id, "source_id": storable(source_id, "source")}
    found = tuple(SourceVersion(*row) for row in run(conn, "source_versions", params))
    if not found:
        raise UnknownSource(f"no source {source_id!r} in scope {scope!r}", source=source_id)
    return found


def _reasons(
    found: Sequence[SourceVersion], keep_versions: int, even_cited: bool
) -> dict[int, Reason | None]:
    """Return why each version stays, None where it goes; a chain stays or goes as a whole."""
    chains: list[list[SourceVersion]] = []
    for version in found:
        if version.extends_tx is None or not chains:
            chains.append([])
        chains[-1].append(version)
    reasons: dict[int, Reason | None] = {}
    for place, chain in enumerate(chains):
        reason: Reason | None = None
        if place >= len(chains) - keep_versions:
            reason = "newest"
        elif any(version.current for version in chain):
            reason = "current"
        elif any(version.derived for version in chain):
            reason = "derived"
        elif any(version.cited for version in chain) and not even_cited:
            reason = "cited"
        reasons |= dict.fromkeys((version.version_tx for version in chain), reason)
    return reasons


def _delete(conn: Connection, params: dict[str, Any]) -> None:
    """Delete versions: first what refers to them, then what is nothing without them."""
    orphans = run(conn, "prune_node_spans", params).fetchall()
    nodes = {
        "scope_id": params["scope_id"],
        "nodes": [node for node, _ in orphans],
        "since": [since for _, since in orphans],
    }
    run(conn, "prune_nodes", nodes)
    prune_rows(conn, **nodes)
    run(conn, "prune_embeddings", nodes)
    run(conn, "prune_edges", nodes)
    run(conn, "prune_derivations", params)
    run(conn, "prune_spans", params)
    run(conn, "prune_versions", params)
    run(conn, "prune_titles", params)
