"""Deliver, read top to bottom: what a plan selected, the shelf as of it, the bundle, the trace."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any
from uuid import UUID

from planner.deliver.deliver import deliver as pack
from planner.engine import Engine, Stopwatch
from planner.errors import InsufficientEvidence, RequestError
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.explain import read_as_of, read_record
from planner.request import DeliverRequest
from planner.store.connect import Connection, run
from planner.store.retry import retried
from planner.store.shelf import ScopeShelf
from planner.store.write import hold_scope
from planner.tokens import counter as counter_named
from planner.trace.delivery import DeliveryRecord, to_row
from planner.trace.plan_id import plan_id
from planner.types import Delivery, EvidencePlan, Hit, PlanRef, ranked


def deliver(
    engine: Engine, plan: EvidencePlan | PlanRef, request: DeliverRequest, *, keep: bool = True
) -> Delivery:
    """Pack what a plan selected into a budget as the model is to read it, and keep what was delivered.

    Without a budget it is what the plan was asked for; the operator's `max_budget` bounds any. Raises
    RequestError, UnknownPlan, InsufficientEvidence, IntegrityError, CounterError, StoreError.
    """
    watch = Stopwatch()
    if request.counter is not None:
        counter_named(request.counter, engine.counters)
    delivery = _packed(engine, plan, request, watch)
    if not keep or engine.settings.trace == "off" or delivery.plan is None:
        return delivery
    made_at = engine.clock()
    named = replace(delivery, delivery_id=str(plan_id(made_at, os.urandom(10))))
    scope = delivery.plan.scope
    _persist(engine, scope, to_row(id_of_scope(scope), named, made_at, watch.timings))
    return named


@retried
def deliveries(engine: Engine, ref: PlanRef) -> tuple[DeliveryRecord, ...]:
    """Return what was delivered of a plan, oldest first. Raises UnknownPlan."""
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_as_of(conn, scope_id, ref)
        return read_deliveries(conn, scope_id, ref)


def read_deliveries(conn: Connection, scope_id: UUID, ref: PlanRef) -> tuple[DeliveryRecord, ...]:
    """Read the same on a connection; of a plan that is not there nothing was delivered."""
    rows = run(conn, "plan_deliveries", {"scope_id": scope_id, "plan_id": UUID(ref.plan_id)})
    return tuple(map(DeliveryRecord.from_row, rows))


@retried
def _packed(
    engine: Engine, plan: EvidencePlan | PlanRef, request: DeliverRequest, watch: Stopwatch
) -> Delivery:
    """Read, in one snapshot, the plan and what it selected, and pack it."""
    ref = plan if isinstance(plan, PlanRef) else plan.ref
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        with watch("plan"):
            made = read_record(conn, scope_id, plan).to_plan({}) if isinstance(plan, PlanRef) else plan
            _check(made)
        with watch("shelf"):
            shelf = ScopeShelf(conn, scope_id, made.as_of)
            hits = _hits(made, shelf)
        try:
            with watch("deliver"):
                delivery = pack(
                    hits,
                    shelf,
                    unit=request.unit or engine.settings.unit,
                    budget=_budget(engine, made, request),
                    counter=counter_named(request.counter or made.budget.counter, engine.counters),
                    neighbours=request.neighbours,
                    on_misfit=request.on_misfit,
                    max_frac=request.max_frac,
                    plan_hash=made.plan_hash,
                )
        except InsufficientEvidence as error:
            raise refused(error, ref, engine.settings.max_budget) from None
    return replace(delivery, plan=ref)


def _check(plan: EvidencePlan) -> None:
    """Refuse a plan that selected nothing because it was refused, or failed."""
    if plan.outcome == "planned":
        return
    error: Any = plan.error or {}
    became = "was refused" if plan.outcome == "refused" else "failed"
    said = f"plan {plan.ref} {became}, so there is nothing to deliver: {error.get('detail')}"
    if plan.outcome == "failed":
        raise RequestError(said, plan=str(plan.ref), cause=error.get("code"))
    raise InsufficientEvidence(
        said,
        reason=error.get("reason", "empty_pool"),
        sufficient_budget=error.get("sufficient_budget"),
        plan=str(plan.ref),
    )


def refused(error: InsufficientEvidence, ref: PlanRef | None, most: int | None) -> InsufficientEvidence:
    """Return the refusal with the plan's reference; a budget that the operator forbids does not suffice."""
    enough, said = error.sufficient_budget, str(error)
    if enough is not None and most is not None and enough > most:
        enough, said = None, f"{said}, but max_budget = {most} forbids it"
    plan = None if ref is None else str(ref)
    return InsufficientEvidence(said, reason=error.reason, sufficient_budget=enough, plan=plan)


def _hits(plan: EvidencePlan, shelf: ScopeShelf) -> list[Hit]:
    """Return the evidence, best first, where it stands as of the plan."""
    chosen = [span.verdict.candidate for span in ranked(plan)]
    standing = shelf.standing([(candidate.ref, candidate.text_hash) for candidate in chosen])
    return [
        Hit(rank, ref, shelf.key(ref), candidate.text_hash)
        for rank, (candidate, ref) in enumerate(zip(chosen, standing, strict=True), start=1)
    ]


def _budget(engine: Engine, plan: EvidencePlan, request: DeliverRequest) -> int:
    """Return the budget in tokens; what the plan was narrowed by bounds the plan's own only."""
    asked = request.budget_tokens or plan.budget.requested
    ceilings = (engine.settings.max_budget, None if request.budget_tokens else plan.budget.ceiling)
    return min([asked, *(ceiling for ceiling in ceilings if ceiling is not None)])


@retried
def _persist(engine: Engine, scope: str, row: dict[str, Any]) -> None:
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "writer") as conn:
        hold_scope(conn, scope_id, scope)
        run(conn, "persist_delivery", row)
