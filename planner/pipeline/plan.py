"""Plan, read top to bottom: look at the scope, recall, count, decide, record. Stages do the work."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from planner.engine import Engine, Stopwatch
from planner.errors import NotFound, PlannerError, RequestError, UnknownModel
from planner.pipeline.draft import Draft
from planner.pipeline.explain import recorded
from planner.ports import Rescorer, TokenCounter
from planner.request import PlanRequest
from planner.selection.budget import resolve_budget
from planner.store.call import farewell
from planner.store.connect import run
from planner.store.retry import attempts, retried
from planner.store.write import hold_scope
from planner.tokens import counter as counter_named
from planner.trace.record import Record
from planner.types import Budget, EvidencePlan

UNIQUE_VIOLATION = "23505"


def plan(engine: Engine, request: PlanRequest, rescorer: Rescorer | None = None) -> EvidencePlan:
    """Turn a question into an evidence plan, persisted before it is returned.

    `rescorer` may weigh the pool anew; the scores that it returns are what is hashed and traced.

    Raises RequestError and NotFound before anything is decided, and leaves nothing behind then. Every other
    failure, InsufficientEvidence among them, is traced first; its detail names the trace as `plan`.
    """
    watch = Stopwatch()
    engine = replace(engine, settings=request.within(engine.settings))
    effective, counter, budget = asked(engine, request)
    try:
        for attempt in attempts(engine.store):
            draft = Draft(engine, effective, counter, budget, rescorer, watch)
            with attempt, engine.store.scoped(draft.scope_id, "reader", snapshot=True) as conn:
                draft.look(conn)
                draft.recall(conn)
                draft.count(conn)
                draft.decide(conn)
    except (RequestError, NotFound):
        raise
    except PlannerError as error:
        draft.failed(error)
    record = draft.record()
    if engine.settings.trace == "sync":
        with farewell():
            persist(engine, draft, record)
    engine.observe(record)
    if draft.error is not None:
        raise draft.error
    return record.to_plan(draft.texts)


def asked(engine: Engine, request: PlanRequest) -> tuple[PlanRequest, TokenCounter, Budget]:
    """Return the effective request, its counter and its budget. Raises RequestError."""
    settings = request.within(engine.settings)
    effective = request.effective(settings)
    entry = settings.models.get(effective.model) if effective.model else None
    if effective.model and entry is None and effective.context_window is None:
        raise UnknownModel(
            f"model {effective.model!r} is not in the table of models; give context_window too, or add it to "
            f"[planner.models] (known: {', '.join(sorted(settings.models))})",
            field="model",
        )
    name = effective.counter or (entry.counter if entry else None) or settings.counter
    counter = counter_named(name, engine.counters)
    windows = [
        w for w in (effective.context_window, entry.context_window if entry else None) if w is not None
    ]
    budget = resolve_budget(
        effective.budget_tokens or settings.default_budget,
        counter=counter.name,
        bound=counter.bound,
        max_frac=settings.max_frac_per_source,
        max_budget=settings.max_budget,
        context_window=min(windows) if windows else None,
    )
    return effective.model_copy(update={"counter": counter.name}), counter, budget


def persist(engine: Engine, draft: Draft, record: Record) -> None:
    """Write the trace; where that fails too, the error that the plan had before is the one to raise."""
    try:
        _write(engine, draft.scope_id, record)
    except PlannerError as error:
        if error.detail.get("sqlstate") == UNIQUE_VIOLATION and _is_there(engine, record):
            return
        if draft.error is None:
            raise
        draft.error.detail["plan"] = None
        draft.error.add_note(f"the trace could not be written: {error}")


@retried
def _write(engine: Engine, scope_id: UUID, record: Record) -> None:
    with engine.store.scoped(scope_id, "writer") as conn:
        hold_scope(conn, scope_id, record.ref.scope)
        run(conn, "persist_plan", record.to_row(scope_id))


def _is_there(engine: Engine, record: Record) -> bool:
    """Say whether the trace is there already: an attempt was committed whose answer was lost."""
    try:
        found = recorded(engine, record.ref)
    except PlannerError:
        return False
    hashes = (record.outcome, record.plan_hash, record.pool_hash)
    return (found.outcome, found.plan_hash, found.pool_hash) == hashes
