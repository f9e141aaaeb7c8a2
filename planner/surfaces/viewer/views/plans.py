"""The plans of a scope: searched, filtered, a page at a time."""

from __future__ import annotations

from planner.errors import RequestError
from planner.surfaces.viewer.visit import Answer, Page, Redirect, Visit
from planner.types import PlanRef

ROWS = 50


def plans(visit: Visit) -> Answer:
    """List plans, newest first; a plan's reference or id leads to it. `part=rows` is for the refresh."""
    text, outcome, after = visit.asked("text"), visit.asked("outcome"), visit.asked("after")
    named = _named(visit.scope, text)
    if named is not None:
        return Redirect(visit.links.plan(visit.access.plan(str(named))))
    found = visit.planner.plans(visit.scope, after=after, limit=ROWS, outcome=outcome, text=text)
    context = {
        "found": found,
        "text": text or "",
        "outcome": outcome or "",
        "after": after,
        "filtered": bool(text or outcome),
    }
    return Page("plan_rows.html" if visit.asked("part") == "rows" else "plans.html", context)


def _named(scope: str, text: str | None) -> PlanRef | None:
    """Return the plan that a search names, None where it is a search."""
    for written in (text or "", f"{scope}:{text}"):
        try:
            return PlanRef.parse(written)
        except RequestError:
            continue
    return None
