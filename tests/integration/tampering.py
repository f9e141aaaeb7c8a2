"""Changing what is stored as a superuser, who alone can, and telling what a test did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner import EvidencePlan, Planner, Settings
from planner.hashing import plan_hash, pool_hash
from planner.ingest import scope_id
from planner.ports import Embedder
from planner.trace.record import Record
from tests.integration.graph import V1, Connection, circle_embedder

Tamper = Callable[..., int]


def tampering(conn: Connection, scope: str) -> Tamper:
    """Return a function that runs a statement on a scope (its last parameter) with no foreign key checked."""

    def tamper(statement: str, *values: Any) -> int:
        with conn.transaction():
            conn.execute("SET LOCAL session_replication_role = replica")
            done = conn.execute(statement.encode(), (*values, scope_id(scope)))
            assert done.rowcount > 0, f"nothing to change: {statement}"
            return done.rowcount

    return tamper


def other(planner: Planner, *, embedder: Embedder | None = None, **settings: Any) -> Planner:
    """Return another planner on the same pool of connections."""
    chosen = Settings(**{**V1, "max_frac_per_source": 1.0, **settings})
    return Planner.from_pool(
        planner.engine.store.pool, settings=chosen, embedder=embedder or circle_embedder()
    )


def rehashed(record: Record) -> tuple[bytes, bytes]:
    """Return the hashes that the rows of a record have."""
    models = {"plan_model": record.policy.plan_model, "score_model": record.score_model}
    both = plan_hash(record.selection, **models), pool_hash(record.selection, **models)
    return bytes.fromhex(both[0]), bytes.fromhex(both[1])


def refs(plan: EvidencePlan) -> list[str]:
    """Return what a plan selected, in its order."""
    return [str(span.verdict.candidate.ref) for span in plan.spans]
