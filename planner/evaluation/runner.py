"""One corpus, from its files to what came of every question, through the same door as everybody's.

A scratch database, every source ingested, every question planned at every budget, every plan delivered by
each unit that is asked for. Nothing is random: two runs differ in their timings alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner.client import Planner
from planner.engine import Stopwatch
from planner.errors import InsufficientEvidence
from planner.evaluation import metrics
from planner.evaluation.corpora import Corpus, Question
from planner.evaluation.loading import Labels, Progress, load
from planner.evaluation.metrics import Item
from planner.selection.budget import request_for
from planner.settings import Settings
from planner.store.scratch import scratch_database
from planner.tokens import counter as counter_named
from planner.types import EvidencePlan, Outcome, SpanRef, Unit

COUNTER = "utf8-script-v1"
"""What budgets are counted in, so that figures of several runs compare."""

NOT_RANKED = (Outcome.DUPLICATE, Outcome.UNSLICEABLE)


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
    delivered: Mapping[str, Got]


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one question: the rank at which each evidence item is hit, and what each budget got."""

    question: Question
    ranks: tuple[int | None, ...]
    at: tuple[AtBudget, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """All questions of a corpus under one configuration; `timings` are milliseconds by stage, one a plan."""

    corpus: str
    embedder: str
    settings: Settings
    units: tuple[Unit, ...]
    asked: tuple[Asked, ...]
    timings: Mapping[str, Sequence[float]] = field(default_factory=dict)


def evaluate(
    corpus: Corpus,
    url: str,
    variants: Sequence[Settings],
    *,
    budgets: Sequence[int],
    units: Sequence[Unit] = (),
    limit: int | None = None,
    progress: Progress = lambda stage, done, total: None,
    **parts: Any,
) -> tuple[Run, ...]:
    """Ingest a corpus into a scratch database on the server of `url`, and ask it under each variant.

    `budgets` are what plans may fill and what bundles may count, in tokens of `utf8-script-v1`; `units` are
    those to deliver by; `limit` is how many questions to ask; `parts` are those of `Planner.connect`. No plan
    is kept, and no operator's maximum narrows a budget. Raises MalformedInput, IngestError, EmbedderError,
    StoreError.
    """
    questions = corpus.questions[:limit]
    with scratch_database(url) as scratch, Planner.connect(scratch, settings=variants[0], **parts) as planner:
        load(planner, corpus, progress)
        labels = Labels(planner, corpus)
        labelled = [(question, labels.items(question)) for question in questions]
        name = planner.engine.embedder().name
        runs = []
        for settings in variants:
            unbound = settings.model_copy(update={"trace": "off", "max_budget": None})
            asking = _Asking(Planner(replace(planner.engine, settings=unbound)), budgets, units)
            asked = []
            for number, (question, items) in enumerate(labelled, start=1):
                asked.append(asking.ask(question, items))
                progress(f"{corpus.name}: {described(settings)}", number, len(labelled))
            runs.append(Run(corpus.name, name, settings, tuple(units), tuple(asked), asking.timings))
        return tuple(runs)


def described(settings: Settings) -> str:
    """Say in a few words what a run is under."""
    cap = f"at most {settings.max_frac_per_source:g} from one source"
    return f"score_model {settings.score_model}, plan_model {settings.plan_model}, {cap}"


@dataclass
class _Asking:
    """Asks questions, and times it."""

    planner: Planner
    budgets: Sequence[int]
    units: Sequence[Unit]
    timings: dict[str, list[float]] = field(default_factory=dict)

    def ask(self, question: Question, items: tuple[Item, ...]) -> Asked:
        """Ask a question at each budget; the pool, and so the ranks, are the same at all of them."""
        plans = [self._plan(question, budget) for budget in self.budgets]
        at = [
            _figures(
                plan,
                question,
                items,
                {unit: self._bundle(plan, unit, question, items) for unit in self.units},
            )
            for plan in plans
        ]
        return Asked(question, tuple(metrics.found_at(items, ranked(plans[0]))), tuple(at))

    def _plan(self, question: Question, budget: int) -> EvidencePlan:
        requested = request_for(budget, counter_named(COUNTER, {}).bound)
        watch = Stopwatch()
        with watch("plan"):
            plan = self.planner.plan(
                question.scope, question.text, budget_tokens=requested, counter=COUNTER, allow_ungrounded=True
            )
        self._note({**watch.timings, **plan.timings})
        return plan

    def _bundle(self, plan: EvidencePlan, unit: Unit, question: Question, items: Sequence[Item]) -> Got:
        """Deliver a plan; for `auto` one of `chunk_share` of the budget. What does not fit is empty.

        Nothing is kept in reserve of that part, where `context` keeps what a plan does of an estimate.
        """
        budget = plan.budget.budget
        if unit == "auto":
            plan = self._plan(question, max(1, math.floor(self.planner.engine.settings.chunk_share * budget)))
        watch = Stopwatch()
        try:
            with watch(f"deliver {unit}"):
                bundle = self.planner.deliver(plan, unit, budget_tokens=budget, counter=COUNTER)
        except InsufficientEvidence:
            return Got(0, 0, metrics.holds_answer("", question.answers))
        finally:
            self._note(watch.timings)
        shown = [item.ref for item in bundle.items if not item.erased]
        answered = metrics.holds_answer(bundle.text, question.answers)
        return Got(bundle.used, metrics.hits(items, shown), answered)

    def _note(self, timings: Mapping[str, float]) -> None:
        for stage, milliseconds in timings.items():
            self.timings.setdefault(stage, []).append(milliseconds)


def ranked(plan: EvidencePlan) -> list[SpanRef]:
    """Return the spans that dedup kept of the pool, in rank order (selection.md)."""
    verdicts = [span.verdict for span in (*plan.spans, *plan.rejected)]
    kept = [(-v.weight, v.candidate.ref) for v in verdicts if v.outcome not in NOT_RANKED]
    return [ref for _, ref in sorted(kept)]


def _figures(
    plan: EvidencePlan, question: Question, items: Sequence[Item], delivered: Mapping[str, Got]
) -> AtBudget:
    selected = [span.verdict.candidate for span in plan.spans]
    told = [metrics.holds_answer(span.text or "", question.answers) for span in plan.spans]
    nothing = metrics.holds_answer("", question.answers)
    found = metrics.hits(items, [candidate.ref for candidate in selected])
    return AtBudget(
        budget=plan.budget.budget,
        selected=Got(plan.used, found, nothing if nothing is None else any(told)),
        sources=len({candidate.source_id for candidate in selected}),
        redundant=metrics.redundant_share(selected),
        stranded=plan.stats["budget_stranded_by_cap"],
        gap_ppm=plan.optimality_gap_ppm,
        delivered=delivered,
    )
