"""One question, planned and delivered at every budget, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.client import Planner
from planner.engine import Stopwatch
from planner.errors import InsufficientEvidence
from planner.evaluation import metrics
from planner.evaluation.corpora import Question
from planner.evaluation.metrics import Item
from planner.selection.budget import request_for
from planner.tokens import counter as counter_named
from planner.types import EvidencePlan, Outcome, SpanRef, Unit

COUNTER = "utf8-script-v1"
"""What budgets are counted in, so that figures of several runs compare."""

NOT_RANKED = (Outcome.DUPLICATE, Outcome.UNSLICEABLE)

Labelled = tuple[Question, tuple[Item, ...]]
"""A question, and where its evidence is."""


@dataclass(frozen=True, slots=True)
class Got:
    """How many evidence items a text holds for its tokens, and whether the answer: None where unknown."""

    used: int
    found: int
    answered: bool | None


@dataclass(frozen=True, slots=True)
class AtBudget:
    """What one question got at one budget: selected spans with what is said of them, and bundles by unit."""

    budget: int
    selected: Got
    sources: int
    redundant: float
    stranded: int
    gap_ppm: int
    delivered: Mapping[Unit, Got]


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one question: the rank at which each evidence item is hit, and what each budget got."""

    question: Question
    ranks: tuple[int | None, ...]
    at: tuple[AtBudget, ...]


@dataclass
class Asking:
    """Asks questions, and times it; `timings` are milliseconds by stage, one a plan."""

    planner: Planner
    budgets: Sequence[int]
    units: Sequence[Unit]
    timings: dict[str, list[float]] = field(default_factory=dict)

    def ask(self, question: Question, items: tuple[Item, ...]) -> Asked:
        """Ask a question at each budget; the pool, and so the ranks, are the same at all of them."""
        plans = [self._plan(question, budget) for budget in self.budgets]
        at = []
        for plan in plans:
            bundles = {unit: self._bundle(plan, unit, (question, items)) for unit in self.units}
            at.append(_figures(plan, question, items, bundles))
        return Asked(question, tuple(metrics.found_at(items, ranked(plans[0]))), tuple(at))

    def _plan(self, question: Question, budget: int) -> EvidencePlan:
        watch = Stopwatch()
        with watch("plan"):
            plan = planned(self.planner, question, budget)
        self._note({**watch.timings, **plan.timings})
        return plan

    def _bundle(self, plan: EvidencePlan, unit: Unit, labelled: Labelled) -> Got:
        """Deliver a plan; for `auto` one of `chunk_share` of the budget.

        Nothing is kept in reserve of that part, where `context` keeps what a plan does of an estimate.
        """
        budget = plan.budget.budget
        if unit == "auto":
            plan = self._plan(labelled[0], part(budget, self.planner.engine.settings.chunk_share))
        watch = Stopwatch()
        with watch(f"deliver {unit}"):
            got = delivered(self.planner, plan, unit, budget, labelled)
        self._note(watch.timings)
        return got

    def _note(self, timings: Mapping[str, float]) -> None:
        for stage, milliseconds in timings.items():
            self.timings.setdefault(stage, []).append(milliseconds)


def planned(planner: Planner, question: Question, budget: int, **instead: Any) -> EvidencePlan:
    """Plan a question within a budget that binds as it is; where there is no evidence the plan is empty.

    `instead` are fields of the request that take the place of its own.
    """
    requested = request_for(budget, counter_named(COUNTER, {}).bound)
    how = {"budget_tokens": requested, "counter": COUNTER, "allow_ungrounded": True}
    return planner.plan({"scope": question.scope, "text": question.text, **how, **instead})


def part(budget: int, share: float) -> int:
    """Return a share of a budget, at least a token."""
    return max(1, math.floor(share * budget))


def delivered(planner: Planner, plan: EvidencePlan, unit: Unit, budget: int, labelled: Labelled) -> Got:
    """Deliver a plan by a unit into a budget, and look at what is in the bundle; nothing where none fits."""
    question, items = labelled
    try:
        bundle = planner.deliver(plan, unit, budget_tokens=budget, counter=COUNTER)
    except InsufficientEvidence:
        return Got(0, 0, metrics.holds_answer("", question.answers))
    shown = [item.ref for item in bundle.items if not item.erased]
    answered = metrics.holds_answer(bundle.text, question.answers)
    return Got(bundle.used, metrics.hits(items, shown), answered)


def selected(plan: EvidencePlan) -> list[SpanRef]:
    """Return the spans that a plan selected."""
    return [span.verdict.candidate.ref for span in plan.spans]


def ranked(plan: EvidencePlan) -> list[SpanRef]:
    """Return the spans that dedup kept of the pool, in rank order (selection.md)."""
    verdicts = [span.verdict for span in (*plan.spans, *plan.rejected)]
    kept = [(-v.weight, v.candidate.ref) for v in verdicts if v.outcome not in NOT_RANKED]
    return [ref for _, ref in sorted(kept)]


def _figures(
    plan: EvidencePlan, question: Question, items: Sequence[Item], bundles: Mapping[Unit, Got]
) -> AtBudget:
    chosen = [span.verdict.candidate for span in plan.spans]
    told = [metrics.holds_answer(span.text or "", question.answers) for span in plan.spans]
    nothing = metrics.holds_answer("", question.answers)
    found = metrics.hits(items, selected(plan))
    return AtBudget(
        budget=plan.budget.budget,
        selected=Got(plan.used, found, nothing if nothing is None else any(told)),
        sources=len({candidate.source_id for candidate in chosen}),
        redundant=metrics.redundant_share(chosen),
        stranded=plan.stats["budget_stranded_by_cap"],
        gap_ppm=plan.optimality_gap_ppm,
        delivered=bundles,
    )
