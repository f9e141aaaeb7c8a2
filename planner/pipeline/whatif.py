"""What stored plans would have been under another configuration: one pool at a time, however many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from planner.engine import Engine
from planner.errors import RequestError
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.explain import read_record
from planner.recall.frame import read_state
from planner.settings import check_values
from planner.store.connect import run
from planner.trace.plan_id import first_id
from planner.trace.record import Record
from planner.trace.whatif import BUDGET, WhatIf, checked_changes, reconsidered
from planner.types import PlanRef

PAGE = 100
"""Plans whose ids are read at once, and which are read in one transaction."""


def whatif(
    engine: Engine,
    changes: Mapping[str, Any],
    *,
    plans: Sequence[PlanRef] = (),
    scopes: Sequence[str] = (),
    since: timedelta | None = None,
) -> WhatIf:
    """Decide these plans again, or those of `scopes` made in the last `since` (None: all), with `changes`.

    Raises RequestError, SettingsError for a value out of range, UnknownPlan, UnknownScope.
    """
    checked = checked_changes(changes)
    check_values({k: v for k, v in checked.items() if k != BUDGET}, "argument")
    if bool(plans) == bool(scopes):
        raise RequestError("name plans, or scopes whose plans are meant; not both, not neither", field="plan")
    result = WhatIf(checked)
    for record in _named(engine, plans) if plans else _made(engine, scopes, since):
        result.add(reconsidered(record, checked))
    return result


def _named(engine: Engine, plans: Sequence[PlanRef]) -> Iterator[Record]:
    for ref in plans:
        scope_id = id_of_scope(ref.scope)
        with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
            yield read_record(conn, scope_id, ref)


def _made(engine: Engine, scopes: Sequence[str], since: timedelta | None) -> Iterator[Record]:
    """Yield the plans of some scopes that have a pool, by time; they are never changed, only pruned."""
    for scope in scopes:
        scope_id = id_of_scope(scope)
        with engine.store.scoped(scope_id, "reader") as conn:
            read_state(conn, scope, scope_id, None)
        after = UUID(int=0) if since is None else UUID(int=first_id(engine.clock() - since).int - 1)
        while True:
            params = {"scope_id": scope_id, "after": after, "limit": PAGE}
            with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
                page = [row[0] for row in run(conn, "decided_plans", params)]
                for plan_id in page:
                    yield read_record(conn, scope_id, PlanRef(scope, str(plan_id)))
            if len(page) < PAGE:
                break
            after = page[-1]
