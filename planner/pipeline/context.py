"""A question answered with a bundle in one step: plan, then deliver, within one budget."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.engine import Engine, unobserved
from planner.errors import InsufficientEvidence
from planner.pipeline.deliver import deliver
from planner.pipeline.plan import asked, plan
from planner.ports import Rescorer
from planner.request import DeliverRequest, PlanRequest
from planner.types import Delivery

TRIALS = 8
"""How many budgets are tried at most to find one that suffices."""


def context(
    engine: Engine, request: PlanRequest, how: DeliverRequest, rescorer: Rescorer | None = None
) -> Delivery:
    """Plan the evidence for a question and deliver it; the bundle keeps within the request's budget.

    For the unit `auto` the plan gets `chunk_share` of it, so that there is slack to upgrade with; for any
    other all of it, of which delivery takes what fits, best first. Raises what `plan` and `deliver` raise;
    where nothing fits, InsufficientEvidence names a budget that was tried and suffices.
    """
    _, _, budget = asked(engine, request)
    tokens = budget.requested if budget.ceiling is None else min(budget.requested, budget.ceiling)
    try:
        return _context(engine, request, how, tokens, rescorer)
    except InsufficientEvidence as error:
        if error.reason == "empty_pool":
            raise
        refusal = error
    sufficient, needed = None, refusal.sufficient_budget
    untraced = engine.settings.model_copy(update={"trace": "off"})
    quiet = replace(engine, settings=untraced, observe=unobserved)
    for _ in range(TRIALS):
        if needed is None or needed > (budget.ceiling or needed):
            break
        try:
            _context(quiet, request, how, needed, rescorer)
            sufficient = needed
            break
        except InsufficientEvidence as error:
            needed = error.sufficient_budget and max(needed + 1, error.sufficient_budget)
    remedy = (
        f"a budget of {sufficient} would do" if sufficient else "no budget that may be asked for would do"
    )
    raise InsufficientEvidence(
        f"nothing fits into a bundle of {tokens} tokens; {remedy}",
        reason="nothing_fits",
        sufficient_budget=sufficient,
        plan=refusal.plan,
    )


def _context(
    engine: Engine, request: PlanRequest, how: DeliverRequest, tokens: int, rescorer: Rescorer | None
) -> Delivery:
    """Do it within so many tokens; a refusal names the least of them with which it may succeed."""
    unit = how.unit or engine.settings.unit
    share = engine.settings.chunk_share if unit == "auto" else 1.0
    part = request.model_copy(update={"budget_tokens": max(1, math.floor(share * tokens))})
    try:
        made = plan(engine, part, rescorer)
    except InsufficientEvidence as error:
        if error.sufficient_budget is not None:
            error.sufficient_budget = math.ceil(error.sufficient_budget / share)
        raise
    return deliver(engine, made, how.model_copy(update={"unit": unit, "budget_tokens": tokens}))
