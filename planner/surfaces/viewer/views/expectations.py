"""What plans of a scope should hold, and which of that fails now."""

from __future__ import annotations

from planner.surfaces.viewer.visit import Answer, Page, Redirect, Visit


def expectations(visit: Visit) -> Answer:
    """List what is expected."""
    return _page(visit)


def check(visit: Visit) -> Answer:
    """Plan every expectation at the newest state, and say which do not hold; the plans are kept."""
    return _page(
        visit,
        checked={str(one.expectation.ref): one for one in visit.planner.check_expectations(visit.scope)},
    )


def remove(visit: Visit) -> Answer:
    """Forget an expectation. Raises Forbidden, RequestError, NotFound."""
    visit.access.require("write")
    visit.planner.remove_expectation(f"{visit.scope}:{visit.form.get('expectation', '')}")
    return Redirect(visit.links.scope(visit.scope, "expectations"))


def _page(visit: Visit, checked: dict[str, object] | None = None) -> Page:
    context = {
        "found": visit.planner.expectations(visit.scope),
        "checked": checked,
        "kept": visit.asked("kept"),
        "may_write": visit.may_write,
    }
    return Page("expectations.html", context)
