"""A plan: what was asked, what came of it, and everything that decided it."""

from __future__ import annotations

from collections.abc import Mapping

from planner.surfaces.viewer.plot import plot
from planner.surfaces.viewer.told import Teller, best_left_out
from planner.surfaces.viewer.views.telling import tell
from planner.surfaces.viewer.visit import Answer, Page, Visit
from planner.trace.told import budget_told, walked
from planner.types import EvidencePlan, PlannedSpan

CARDS = 25
"""How many pieces of evidence a page shows."""

ROWS = 15
"""How many rejected spans the plan's own page shows."""

NODES = 8
"""How many nodes of recall the plan's own page shows."""


def plan(visit: Visit) -> Answer:
    """Show a plan."""
    first = visit.number("from")

    rows: list[PlannedSpan] = []
    best: list[PlannedSpan] = []

    def picked(made: EvidencePlan) -> list[PlannedSpan]:
        rows[:], best[:] = walked(made)[:ROWS], best_left_out(made)
        return [*made.spans[first : first + CARDS], *rows, *best]

    teller = tell(visit, visit.plan, picked)
    made = teller.plan
    context = {
        "plan": made,
        "record": teller.record,
        "first": first,
        "cards": teller.shown(made.spans[first : first + CARDS], first + 1),
        "page_size": CARDS,
        "rows": teller.shown(rows),
        "best": next(iter(teller.shown(best)), None),
        "shares": teller.shares(),
        "budget_told": budget_told(made),
        "plot": plot(made),
        "recall": teller.recall,
        "nodes": teller.recall.nodes[:NODES],
        "deliveries": visit.planner.deliveries(visit.plan),
        "request": {name: value for name, value in made.request.items() if value not in (None, [], ())},
        "since": _since(teller),
        "longest": max(made.timings.values(), default=0.0),
    }
    return Page("plan.html", context)


def _since(teller: Teller) -> Mapping[str, int]:
    """Count the selected spans that were erased since, have a newer source, or were stale already."""
    volumes = [teller.volumes.get(span.verdict.candidate.ref[:2]) for span in teller.plan.spans]
    known = [volume for volume in volumes if volume is not None]
    stale = sum(span.verdict.candidate.ref in teller.plan.stale for span in teller.plan.spans)
    newer = sum(volume.superseded_by is not None and not volume.erased for volume in known)
    return {"erased": sum(volume.erased for volume in known), "newer": newer, "stale": stale}
