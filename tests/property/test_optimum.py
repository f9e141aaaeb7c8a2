"""Greedy against the exact optimum by HiGHS, and both against the fractional bound."""

from __future__ import annotations

import random
import statistics
import sys

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from planner.selection.budget import resolve_budget
from planner.selection.pack import fractional_bound
from planner.selection.pool import RankedPool, rank_pool
from planner.selection.select import select
from planner.settings import DEFAULT_KIND_PRIORS
from planner.types import Budget, Candidate, SelectionPolicy

POOLS = 60


def make_pool(rng: random.Random) -> list[Candidate]:
    return [
        Candidate(
            f"s{rng.randrange(5)}",
            1,
            i * 100,
            i * 100 + 90,
            rng.choice(("paragraph", "code", "heading")),
            rng.choice(("truth", "truth", "cache")),
            rng.random(),
            rng.choice((0, 3, *range(20, 200))),
        )
        for i in range(rng.randrange(5, 45))
    ]


def optimum(pool: RankedPool, budget: Budget) -> float:
    """Return the largest weight of a subset of the kept candidates under the budget and every cap."""
    kept = pool.density_order
    weights, tokens = np.array(pool.weights)[kept], np.array(pool.tokens)[kept]
    sources = np.array(pool.sources)[kept]
    rows = [tokens, *(np.where(sources == source, tokens, 0) for source in range(pool.source_count))]
    limits = [budget.budget, *[budget.cap] * pool.source_count]
    solved = milp(
        -weights,
        constraints=LinearConstraint(np.array(rows), -np.inf, np.array(limits)),
        integrality=np.ones(len(kept)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    assert solved.status == 0, solved.message
    return -float(solved.fun)


@pytest.mark.parametrize("plan_model", ["v1", "v2"])
def test_bound_holds_the_optimum_and_the_optimum_holds_greedy(
    plan_model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = SelectionPolicy(DEFAULT_KIND_PRIORS, 0.5, 0.8, plan_model)  # type: ignore[arg-type]
    rng, ratios, gaps = random.Random(20260131), [], []
    for _ in range(POOLS):
        candidates = make_pool(rng)
        budget = resolve_budget(rng.randrange(100, 1_500), counter="c", bound="exact", max_frac=0.4)
        pool, selection = rank_pool(candidates, policy), select(candidates, policy, budget)
        greedy = sum(v.weight for v in selection.selected)
        best, bound = optimum(pool, budget), fractional_bound(pool, budget)
        assert greedy <= best * (1 + 1e-9)
        assert best <= bound * (1 + 1e-9)
        if bound == 0.0:
            assert selection.optimality_gap_ppm == 0
            continue
        assert selection.optimality_gap_ppm == pytest.approx((bound - greedy) / bound * 1e6, abs=1.5)
        ratios.append(greedy / best)
        gaps.append(selection.optimality_gap_ppm / 1e6)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{plan_model}: greedy/optimum mean {statistics.mean(ratios):.4f}, worst {min(ratios):.4f}; "
            f"gap to the fractional bound mean {statistics.mean(gaps):.4f}, worst {max(gaps):.4f}\n"
        )


def test_a_pool_without_weight_has_no_gap() -> None:
    policy = SelectionPolicy(DEFAULT_KIND_PRIORS, 0.5, 0.8)
    budget = resolve_budget(10, counter="c", bound="exact", max_frac=1.0)
    weightless = [Candidate("s", 1, i, i + 1, "paragraph", "truth", 0.0, 50) for i in range(3)]
    assert select(weightless, policy, budget).optimality_gap_ppm == 0
    assert select([], policy, budget).optimality_gap_ppm == 0


def test_weights_near_the_largest_float_do_not_overflow_the_gap() -> None:
    policy = SelectionPolicy(DEFAULT_KIND_PRIORS, 0.5, 0.8)
    budget = resolve_budget(15, counter="c", bound="exact", max_frac=1.0)
    heavy = [Candidate(f"s{i}", 1, 0, 1, "paragraph", "truth", 1.7e308, 10) for i in range(3)]
    assert select(heavy, policy, budget).optimality_gap_ppm == 333_333
