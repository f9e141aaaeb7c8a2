"""Why something is in a plan or not; and that it should be, kept as an expectation."""

from __future__ import annotations

from planner.surfaces.viewer.visit import Answer, Page, Redirect, Visit
from planner.surfaces.viewer.words import phases


def why(visit: Visit) -> Answer:
    """Ask about a phrase, a source, a node or a span, and read where it fell."""
    what = visit.asked("what")
    found = visit.planner.why(visit.plan, what) if what else None
    refs = [answer.ref for answer in found.answers if answer.ref] if found else []
    texts = dict(zip(refs, visit.planner.texts(visit.scope, refs), strict=True))
    context = {
        "plan": visit.planner.recorded(visit.plan).to_plan({}),
        "what": what or "",
        "found": found,
        "texts": texts,
        "phases": phases(found.answers[0].stage.value) if found and found.answers else [],
        "may_write": visit.may_write,
    }
    return Page("why.html", context)


def expect(visit: Visit) -> Answer:
    """Keep that the question of a plan is to bring what was asked about. Raises Forbidden."""
    visit.access.require("write")
    note = visit.form.get("note", "").strip() or None
    kept = visit.planner.expect(visit.plan, visit.form.get("what", ""), note)
    return Redirect(visit.links.scope(visit.scope, "expectations", kept=kept.ref.expectation_id))
