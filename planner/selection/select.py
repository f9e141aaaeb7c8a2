"""Phase B from a pool to a selection: the one way through weigh, dedup and pack."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from planner.errors import InsufficientEvidence
from planner.selection.budget import sufficient_request
from planner.selection.pack import OUTCOMES, Packing, optimality_gap_ppm, pack
from planner.selection.pool import RankedPool, rank_pool
from planner.types import Budget, Candidate, Outcome, Selection, SelectionPolicy, Verdict


def select(
    candidates: Sequence[Candidate],
    policy: SelectionPolicy,
    budget: Budget,
    *,
    kind_missing: int = 0,
    merged: int = 0,
) -> Selection:
    """Decide the fate of every candidate, in tokens of the budget's counter.

    `kind_missing` and `merged` are the counts of whoever built the pool; they go into the stats. The
    result does not depend on the order of `candidates`. Raises BadCandidate.
    """
    return select_ranked(rank_pool(candidates, policy), budget, kind_missing=kind_missing, merged=merged)


def select_ranked(pool: RankedPool, budget: Budget, *, kind_missing: int = 0, merged: int = 0) -> Selection:
    """Do the same from a pool that is ranked already, as when one pool is packed under several budgets."""
    packing = pack(pool, budget)
    ranked = _verdicts(pool, packing)
    unsliceable = [
        Verdict(candidate, weight, Outcome.UNSLICEABLE)
        for candidate, weight in zip(pool.unsliceable, pool.unsliceable_weights, strict=True)
    ]
    counts = {outcome.value: packing.codes.count(code) for code, outcome in enumerate(OUTCOMES)}
    counts[Outcome.UNSLICEABLE.value] = len(unsliceable)
    cap_blocked = counts[Outcome.OVER_SOURCE_CAP.value] > 0
    stats = {
        "budget_requested": budget.requested,
        "budget_stranded_by_cap": budget.budget - packing.used if cap_blocked else 0,
        "candidates": len(ranked) + len(unsliceable),
        **counts,
        "kind_missing": kind_missing,
        "merged": merged,
        "token_estimate": int(budget.estimate),
    }
    return Selection(
        verdicts=(*ranked, *unsliceable),
        selected=tuple(ranked[i] for i in packing.selected),
        budget=budget,
        used=packing.used,
        stats=MappingProxyType(stats),
        optimality_gap_ppm=optimality_gap_ppm(pool, budget, packing),
    )


def insufficient(selection: Selection) -> InsufficientEvidence | None:
    """Return why nothing was selected, or None where something was; the caller decides whether to raise."""
    if selection.selected:
        return None
    pool, budget = len(selection.verdicts), selection.budget
    sizes = [
        v.candidate.tokens
        for v in selection.verdicts
        if v.outcome not in (Outcome.DUPLICATE, Outcome.UNSLICEABLE)
    ]
    if not sizes:
        found = (
            f"none of the {pool} candidates can be cut out of its text" if pool else "there is no candidate"
        )
        return InsufficientEvidence(f"the pool is empty: {found}", reason="empty_pool")
    smallest = min(sizes)
    sufficient = sufficient_request(smallest, budget)
    remedy = (
        f"the ceiling of {budget.ceiling} forbids a budget that would do"
        if sufficient is None
        else f"a budget of {sufficient} would do"
    )
    return InsufficientEvidence(
        f"nothing fits: the smallest candidate takes {smallest} tokens, the budget is {budget.budget} "
        f"and one source may take {budget.cap} of it; {remedy}",
        reason="nothing_fits",
        sufficient_budget=sufficient,
    )


def _verdicts(pool: RankedPool, packing: Packing) -> list[Verdict]:
    """Return the verdicts on the ranked candidates, in rank order."""
    orders: list[int | None] = [None] * len(pool.candidates)
    for order, i in enumerate(packing.selected):
        orders[i] = order
    originals = {i: pool.candidates[i].ref for i in set(pool.duplicate_of) if i >= 0}
    duplicate_of = map(originals.get, pool.duplicate_of)
    outcomes = map(OUTCOMES.__getitem__, packing.codes)
    return list(map(Verdict, pool.candidates, pool.weights, outcomes, orders, duplicate_of))
