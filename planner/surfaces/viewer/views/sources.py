"""The sources of a scope, by id, a page at a time."""

from __future__ import annotations

from planner.surfaces.viewer.visit import Answer, Page, Visit

ROWS = 100


def sources(visit: Visit) -> Answer:
    """List sources from beyond an id."""
    after = visit.asked("after")
    found = visit.planner.sources(visit.scope, after=after, limit=ROWS)
    return Page("sources.html", {"found": found, "after": after or ""})
