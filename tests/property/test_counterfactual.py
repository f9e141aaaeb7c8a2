"""Counterfactuals: what is said to suffice does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from planner.errors import UnknownSpan
from planner.selection.budget import resolve_budget
from planner.selection.counterfactual import Counterfactual, counterfactual
from planner.selection.pool import rank_pool
from planner.selection.select import select
from planner.settings import DEFAULT_KIND_PRIORS
from planner.types import Budget, Candidate, Outcome, SelectionPolicy, SpanRef
from tests.strategies import budgets, policies, pools

NO_ANSWER = (Outcome.SELECTED, Outcome.DUPLICATE, Outcome.UNSLICEABLE)


def rerun(
    pool: list[Candidate], policy: SelectionPolicy, budget: Budget, *, requested: int, max_frac: float
) -> set[SpanRef]:
    again = resolve_budget(
        requested,
        counter=budget.counter,
        bound="estimate" if budget.estimate else "exact",
        max_frac=max_frac,
        max_budget=budget.ceiling,
    )
    return {v.candidate.ref for v in select(pool, policy, again).selected}


@given(pools(max_size=20), policies, budgets())
@settings(max_examples=150)
def test_what_is_said_to_suffice_does(pool: list[Candidate], policy: SelectionPolicy, budget: Budget) -> None:
    ranked = rank_pool(pool, policy)
    for verdict in select(pool, policy, budget).verdicts:
        ref = verdict.candidate.ref
        found = counterfactual(ranked, budget, ref)
        if verdict.outcome in NO_ANSWER:
            assert found == Counterfactual(None, None)
            continue
        asked, share = found.sufficient_budget, found.sufficient_max_frac
        if asked is not None:
            assert budget.requested < asked <= (budget.ceiling or asked)
            assert ref in rerun(pool, policy, budget, requested=asked, max_frac=budget.max_frac)
        if share is not None:
            assert budget.max_frac < share <= 1.0
            assert ref in rerun(pool, policy, budget, requested=budget.requested, max_frac=share)


@given(pools(max_size=20), policies, budgets())
@settings(max_examples=100)
def test_without_a_ceiling_some_budget_always_suffices(
    pool: list[Candidate], policy: SelectionPolicy, budget: Budget
) -> None:
    free = resolve_budget(budget.requested, counter="caller", bound="exact", max_frac=budget.max_frac)
    ranked = rank_pool(pool, policy)
    for verdict in select(pool, policy, free).verdicts:
        if verdict.outcome not in NO_ANSWER:
            assert counterfactual(ranked, free, verdict.candidate.ref).sufficient_budget is not None


def test_a_span_outside_the_pool_is_refused() -> None:
    policy = SelectionPolicy(DEFAULT_KIND_PRIORS, 0.5, 0.8)
    budget = resolve_budget(10, counter="caller", bound="exact", max_frac=1.0)
    with pytest.raises(UnknownSpan, match="nowhere@1:0-1"):
        counterfactual(rank_pool([], policy), budget, SpanRef("nowhere", 1, 0, 1))
