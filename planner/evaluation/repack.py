"""One plan's pool under other budgets and caps: what planning anew would give, without recall."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.hashing import plan_hash, pool_hash
from planner.ports import Bound
from planner.selection.budget import at_max_frac, at_request, request_for
from planner.selection.pool import RankedPool, rank_pool
from planner.selection.select import select_ranked
from planner.settings import Settings
from planner.trace.record import policy_from
from planner.types import EvidencePlan, PlannedSpan


@dataclass(frozen=True, slots=True)
class Pool:
    """What was found for one question, ready to be packed; `plan` is the one that found it."""

    plan: EvidencePlan
    ranked: RankedPool

    @classmethod
    def of(cls, plan: EvidencePlan, settings: Settings) -> Pool:
        """Return the pool of a plan that was made under these settings."""
        candidates = [span.verdict.candidate for span in (*plan.spans, *plan.rejected)]
        return cls(plan, rank_pool(candidates, policy_from(settings.to_dict(), settings.plan_model)))

    def packed(self, tokens: int, max_frac: float) -> EvidencePlan:
        """Return the plan within another budget in force and cap, with its hashes; texts are left out."""
        plan = self.plan
        bound: Bound = "estimate" if plan.budget.estimate else "exact"
        budget = at_max_frac(at_request(plan.budget, request_for(tokens, bound)), max_frac)
        counted = {name: plan.stats[name] for name in ("kind_missing", "merged")}
        selection = select_ranked(self.ranked, budget, **counted)
        models = {"plan_model": plan.plan_model, "score_model": plan.score_model}
        return replace(
            plan,
            plan_hash=plan_hash(selection, **models),
            pool_hash=pool_hash(selection, **models),
            budget=budget,
            used=selection.used,
            stats=selection.stats,
            optimality_gap_ppm=selection.optimality_gap_ppm,
            spans=tuple(map(PlannedSpan, selection.selected)),
            rejected=tuple(map(PlannedSpan, selection.rejected())),
        )
