"""What stored plans would have been under another configuration: one pool at a time, however many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from planner.engine import Engine
from planner.errors import RequestError
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.explain import read_record, recorded
from planner.recall.frame import read_state
from planner.settings import check_values
from planner.store.connect import run
from planner.store.retry import retried
from planner.trace.plan_id import first_id
from planner.trace.whatif import BUDGET, Reconsidered, WhatIf, checked_changes, reconsidered
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
    for ref in plans:
        result.add(reconsidered(recorded(engine, ref), checked))
    for scope in scopes:
        first = UUID(int=0) if since is None else UUID(int=first_id(engine.clock() - since).int - 1)
        after: UUID | None = first
        while after is not None:
            page, after = _page(engine, scope, after, checked)
            for plan in page:
                result.add(plan)
    return result


@retried
def _page(
    engine: Engine, scope: str, after: UUID, changes: Mapping[str, Any]
) -> tuple[list[Reconsidered], UUID | None]:
    """Decide the next plans of a scope that have a pool; return them, and where others begin, if any."""
    scope_id = id_of_scope(scope)
    params = {"scope_id": scope_id, "after": after, "limit": PAGE}
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        ids = [row[0] for row in run(conn, "decided_plans", params)]
        page = [
            reconsidered(read_record(conn, scope_id, PlanRef(scope, str(plan_id))), changes)
            for plan_id in ids
        ]
    return page, ids[-1] if len(ids) == PAGE else None
