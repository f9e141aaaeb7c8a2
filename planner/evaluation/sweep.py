"""Two choices as curves: how much of a plan one source may take, and by which unit evidence is delivered.

Recall runs once a question; its pool is packed under each cap and budget, and what it selects under the cap
in force is delivered by each unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from planner.client import Planner
from planner.evaluation import metrics
from planner.evaluation.asking import COUNTER, Got, Labelled, delivered, part, planned, selected
from planner.evaluation.corpora import Corpus
from planner.evaluation.loading import Progress
from planner.evaluation.quality import average, quality, recall
from planner.evaluation.repack import Pool
from planner.evaluation.runner import filled, labelled, silent, unbound
from planner.settings import Settings
from planner.types import EvidencePlan, Unit


@dataclass(frozen=True, slots=True)
class Grid:
    """What is tried: budgets in tokens, caps, units, and for `auto` the shares of a budget to plan with."""

    budgets: Sequence[int]
    max_fracs: Sequence[float]
    units: Sequence[Unit]
    chunk_shares: Sequence[float]

    def ways(self) -> Iterator[tuple[str, Unit, float]]:
        """Yield the ways to deliver: a name, the unit, and the share of the budget that the plan gets."""
        for unit in self.units:
            if unit == "auto":
                yield from ((f"auto {share:g}", unit, share) for share in self.chunk_shares)
            else:
                yield unit, unit, 1.0


class Packed(NamedTuple):
    """What a plan of a question holds: items hit, sources, tokens used, tokens that the cap left unused."""

    found: int
    sources: int
    used: int
    stranded: int


@dataclass(slots=True)
class _Tally:
    """What the questions got so far, by cap or way and budget."""

    evidence: list[int] = field(default_factory=list)
    caps: dict[tuple[float, int], list[Packed]] = field(default_factory=dict)
    ways: dict[tuple[str, int], list[Got]] = field(default_factory=dict)


def sweep(
    corpus: Corpus,
    url: str,
    settings: Settings,
    grid: Grid,
    *,
    limit: int | None = None,
    progress: Progress = silent,
    **parts: Any,
) -> dict[str, Any]:
    """Return the document of a corpus: `caps` of what is selected, `units` of what is delivered, by budget.

    Everything but the cap, the unit and the share is as the settings say. `limit` is how many questions to
    ask; `parts` are those of `Planner.connect`. Raises what `evaluate` raises.
    """
    tally = _Tally()
    with filled((corpus,), url, settings, progress, **parts) as planner:
        asking, name = unbound(planner, settings), planner.engine.embedder().name
        questions = labelled(planner, corpus, limit)
        for number, one in enumerate(questions, start=1):
            _try(asking, one, grid, tally)
            progress(f"{corpus.name}: caps and units", number, len(questions))
    return {
        "corpus": corpus.name,
        "embedder": name,
        "score_model": settings.score_model,
        "plan_model": settings.plan_model,
        "max_frac": settings.max_frac_per_source,
        "counter": COUNTER,
        "asked": len(questions),
        "caps": {f"{cap:g}": _by_budget(grid, tally, cap) for cap in grid.max_fracs},
        "units": {name: _delivered(grid, tally, name) for name, _, _ in grid.ways()},
    }


def _try(planner: Planner, one: Labelled, grid: Grid, tally: _Tally) -> None:
    """Ask a question, and add what it gets."""
    settings = planner.engine.settings
    question, items = one
    pool = Pool.of(planned(planner, question, max(grid.budgets)), settings)
    tally.evidence.append(len(items))
    for budget in grid.budgets:
        for cap in grid.max_fracs:
            held = _packed(pool.packed(budget, cap), one)
            tally.caps.setdefault((cap, budget), []).append(held)
        for name, unit, share in grid.ways():
            plan = pool.packed(part(budget, share), settings.max_frac_per_source)
            tally.ways.setdefault((name, budget), []).append(delivered(planner, plan, unit, budget, one))


def _packed(plan: EvidencePlan, one: Labelled) -> Packed:
    spans = selected(plan)
    sources = len({span.source_id for span in spans})
    return Packed(metrics.hits(one[1], spans), sources, plan.used, plan.stats["budget_stranded_by_cap"])


def _by_budget(grid: Grid, tally: _Tally, cap: float) -> Mapping[str, Any]:
    out = {}
    for budget in grid.budgets:
        plans = tally.caps[cap, budget]
        out[str(budget)] = {
            **recall(tally.evidence, [plan.found for plan in plans]),
            "utilisation": average(plan.used / budget for plan in plans),
            "distinct_sources": average(plan.sources for plan in plans),
            "stranded_budget": average(plan.stranded / budget for plan in plans),
        }
    return out


def _delivered(grid: Grid, tally: _Tally, name: str) -> Mapping[str, Any]:
    out = {}
    for budget in grid.budgets:
        bundles = tally.ways[name, budget]
        used = average(bundle.used / budget for bundle in bundles)
        out[str(budget)] = {**quality(tally.evidence, bundles), "utilisation": used}
    return out
