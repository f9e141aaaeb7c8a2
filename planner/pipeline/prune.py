"""Bounding the trace, as the owner: plans and deliveries older than a time go, in batches, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from planner.engine import Engine
from planner.errors import RequestError, UnknownScope
from planner.store.connect import run
from planner.store.retry import retried
from planner.trace.plan_id import first_id

BATCH = 100
"""Plans that one transaction deletes, each with its pool of up to `max_spans` rows."""

VACUUM = "VACUUM (ANALYZE) planner.plan, planner.plan_candidate, planner.plan_node, planner.delivery;"
"""What makes the space free for new rows at once; autovacuum does the same later."""


@dataclass(frozen=True, slots=True)
class Prunable:
    """How much was made before a time, to the millisecond; of the deliveries, those of such plans too."""

    before: datetime
    plans: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What went, row by row of each table; `vacuum` is advice."""

    before: datetime
    plans: int
    candidates: int
    nodes: int
    deliveries: int
    vacuum: str = VACUUM

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON data."""
        return {**asdict(self), "before": self.before.isoformat()}


def prunable(engine: Engine, before: datetime, scope: str | None = None) -> Prunable:
    """Count what `prune` would delete. Raises RequestError for a time without its zone, UnknownScope."""
    bound, plans, deliveries = _bound(before), 0, 0
    for scope_id in _scopes(engine, scope):
        found = _counts(engine, "prunable", {"scope_id": scope_id, "bound": bound})
        plans, deliveries = plans + found[0], deliveries + found[1]
    return Prunable(before, plans, deliveries)


def prune(engine: Engine, before: datetime, scope: str | None = None, *, batch: int = BATCH) -> Pruned:
    """Delete the plans and deliveries made before a time, of one scope or of all; each batch is committed.

    Raises RequestError for a time without its zone, UnknownScope.
    """
    bound, plans, candidates, nodes, deliveries = _bound(before), 0, 0, 0, 0
    for scope_id in _scopes(engine, scope):
        params = {"scope_id": scope_id, "bound": bound, "batch": batch}
        for found in _batches(engine, "prune_plans", params):
            plans, candidates = plans + found[0], candidates + found[1]
            nodes, deliveries = nodes + found[2], deliveries + found[3]
        deliveries += sum(found[0] for found in _batches(engine, "prune_deliveries", params))
    return Pruned(before, plans, candidates, nodes, deliveries)


def _batches(engine: Engine, name: LiteralString, params: Mapping[str, Any]) -> Iterator[tuple[int, ...]]:
    """Run a statement in transactions of its own until it finds less than a batch; yield its counts."""
    found: tuple[int, ...] = (params["batch"],)
    while found[0] == params["batch"]:
        found = _counts(engine, name, params)
        yield found


@retried
def _counts(engine: Engine, name: LiteralString, params: Mapping[str, Any]) -> tuple[int, ...]:
    """Run a statement that counts, in a transaction of its own."""
    with engine.store.maintenance() as conn:
        row = run(conn, name, params).fetchone()
        assert row is not None
        return row


def _bound(before: datetime) -> UUID:
    if before.tzinfo is None:
        raise RequestError(f"before = {before.isoformat()} has no zone; give it one", field="before")
    return first_id(before)


@retried
def _scopes(engine: Engine, scope: str | None) -> list[UUID]:
    with engine.store.maintenance() as conn:
        found = {row[0]: row[1] for row in run(conn, "list_scopes")}
    if scope is None:
        return list(found.values())
    if scope not in found:
        raise UnknownScope(f"no scope {scope!r}", scope=scope)
    return [found[scope]]
