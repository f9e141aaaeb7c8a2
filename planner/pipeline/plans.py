"""Looking over the plans of a scope, newest first, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

from planner.engine import Engine
from planner.errors import RequestError
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.browse import storable
from planner.recall.frame import read_state
from planner.store.connect import run
from planner.store.retry import retried
from planner.trace.plan_id import first_id
from planner.types import Outcome, PlanRef

PlanOutcome = Literal["planned", "refused", "failed"]

MAX_PLANS = 1_000
"""The most plans of a page."""

MAX_TEXT = 1_000
"""The most characters to search questions for."""

FIRST, BEYOND = UUID(int=0), UUID(int=2**128 - 1)
"""Bounds on ids that leave nothing out."""


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan in a line: what was asked, what came of it, how the budget went, how long it took.

    `question` is the text, or the first of the parts; None where a plan was asked for otherwise. `counts`
    are the candidates by outcome, as in the plan's stats. `took_ms` is the sum of its stages, without the
    writing of the trace.
    """

    ref: PlanRef
    created_at: datetime
    outcome: PlanOutcome
    error_code: str | None
    question: str | None
    budget_requested: int
    budget: int
    cap: int
    used: int
    counter: str
    as_of: int
    plan_model: str
    score_model: str
    plan_hash: str | None
    pool_hash: str | None
    candidates: int
    counts: Mapping[str, int]
    took_ms: float

    @property
    def selected(self) -> int:
        """How many spans were selected."""
        return self.counts[Outcome.SELECTED.value]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON data, with the names that a plan has."""
        return {
            "plan": str(self.ref),
            "plan_id": self.ref.plan_id,
            "scope": self.ref.scope,
            "created_at": self.created_at.isoformat(),
            "outcome": self.outcome,
            "error_code": self.error_code,
            "question": self.question,
            "budget_requested": self.budget_requested,
            "budget": self.budget,
            "cap": self.cap,
            "used": self.used,
            "counter": self.counter,
            "as_of": self.as_of,
            "plan_model": self.plan_model,
            "score_model": self.score_model,
            "plan_hash": self.plan_hash,
            "pool_hash": self.pool_hash,
            "candidates": self.candidates,
            "counts": dict(self.counts),
            "took_ms": self.took_ms,
        }


@dataclass(frozen=True, slots=True)
class PlanPage:
    """Some plans of a scope, newest first; `next_after` is where the next page begins, None at the end."""

    scope: str
    plans: tuple[PlanSummary, ...]
    next_after: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the page as JSON data."""
        plans = [plan.to_dict() for plan in self.plans]
        return {"scope": self.scope, "plans": plans, "next_after": self.next_after}


@retried
def plans(
    engine: Engine,
    scope: str,
    *,
    after: str | None = None,
    limit: int = 50,
    outcome: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    text: str | None = None,
) -> PlanPage:
    """Return a page of a scope's plans. Raises UnknownScope, RequestError naming a bad argument."""
    if not 1 <= limit <= MAX_PLANS:
        raise RequestError(f"limit = {limit}: a page has 1 to {MAX_PLANS} plans", field="limit")
    if outcome is not None and outcome not in get_args(PlanOutcome):
        raise RequestError(
            f"outcome = {outcome!r}; write one of {', '.join(get_args(PlanOutcome))}", field="outcome"
        )
    if text is not None and not 1 <= len(storable(text, "text")) <= MAX_TEXT:
        raise RequestError(f"text: search for 1 to {MAX_TEXT} characters", field="text")
    scope_id = id_of_scope(scope)
    params = {
        "scope_id": scope_id,
        "first": _first(since, "since") or FIRST,
        "before": min(_first(until, "until") or BEYOND, _id(after) if after is not None else BEYOND),
        "outcome": outcome,
        "text": text,
        "limit": limit + 1,
    }
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        found = [_summary(scope, row) for row in run(conn, "list_plans", params)]
    page = tuple(found[:limit])
    return PlanPage(scope, page, page[-1].ref.plan_id if len(found) > limit else None)


def _summary(scope: str, row: tuple[Any, ...]) -> PlanSummary:
    plan_id, *about, plan_hash, pool_hash, candidates, took_ms = row[:-6]
    counts = dict(zip([outcome.value for outcome in Outcome], row[-6:], strict=True))
    hashes = [hashed.hex() if hashed else None for hashed in (plan_hash, pool_hash)]
    columns: tuple[Any, ...] = (PlanRef(scope, str(plan_id)), *about, *hashes, candidates, counts, took_ms)
    return PlanSummary(*columns)


def _first(time: datetime | None, field: str) -> UUID | None:
    """Return the smallest id of a time. Raises RequestError where it has no zone."""
    if time is None:
        return None
    if time.tzinfo is None:
        raise RequestError(f"{field} = {time.isoformat()} has no zone; give it one", field=field)
    return first_id(time)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise RequestError(f"after = {text!r} is not the id of a plan", field="after") from None
