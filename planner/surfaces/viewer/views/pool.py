"""All that recall brought in: what was left out, a page at a time, and the nodes that were found."""

from __future__ import annotations

from planner.errors import RequestError
from planner.surfaces.viewer.told import left_out
from planner.surfaces.viewer.views.telling import tell
from planner.surfaces.viewer.visit import Answer, Page, Visit
from planner.types import EvidencePlan, Outcome, PlannedSpan

ROWS = 100
NODES = 100


def pool(visit: Visit) -> Answer:
    """List what was left out, in the order of packing; all of it, of one outcome or of one source."""
    first, outcome, source = visit.number("from"), visit.asked("outcome"), visit.asked("source")
    if outcome is not None and outcome not in set(Outcome) - {Outcome.SELECTED}:
        raise RequestError(f"outcome = {outcome!r} is none of a rejected span", field="outcome")
    found: list[PlannedSpan] = []

    def picked(made: EvidencePlan) -> list[PlannedSpan]:
        found[:] = left_out(made, outcome, source)
        return found[first : first + ROWS]

    teller = tell(visit, visit.plan, picked)
    context = {
        "plan": teller.plan,
        "rows": teller.shown(found[first : first + ROWS], first + 1),
        "first": first,
        "page_size": ROWS,
        "total": len(found),
        "outcome": outcome or "",
        "source": source or "",
    }
    return Page("pool.html", context)


def recall(visit: Visit) -> Answer:
    """List the nodes that recall found, best first, with the ways that led to them."""
    first = visit.number("from")
    record = visit.planner.recorded(visit.plan)
    found = visit.planner.recalled(visit.plan, offset=first, limit=NODES)
    return Page(
        "recall.html", {"plan": record.to_plan({}), "record": record, "recall": found, "first": first}
    )
