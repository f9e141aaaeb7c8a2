"""Two plans side by side: what entered, what left, what moved, and why."""

from __future__ import annotations

from collections import Counter

from planner.errors import RequestError
from planner.surfaces.viewer.visit import Answer, Page, Visit
from planner.types import PlanRef

ROWS = 200


def compare(visit: Visit) -> Answer:
    """Compare plans `a` and `b`, or the two that were ticked in the list (`plan`, twice)."""
    ticked = visit.several.get("plan", ())
    a, b = visit.asked("a"), visit.asked("b")
    if len(ticked) >= 2:
        b, a = ticked[:2]  # the list has the newest first
    elif ticked:
        a = a or ticked[0]
    context: dict[str, object] = {"a": a or "", "b": b or "", "found": None, "latest": None}
    if not (a and b):
        context["latest"] = visit.planner.plans(visit.scope, limit=20)
        return Page("compare.html", context)
    refs = (_ref(visit, a, "a"), _ref(visit, b, "b"))
    found = visit.planner.diff(*refs)
    changes = found.changes[:ROWS]
    texts = visit.planner.texts(visit.scope, [change.ref for change in changes])
    plans = [visit.planner.recorded(ref).to_plan({}) for ref in refs]
    context |= {
        "found": found,
        "plans": plans,
        "changes": list(zip(changes, texts, strict=True)),
        "counts": Counter(change.change.value for change in found.changes),
        "unlisted": len(found.changes) - len(changes),
    }
    return Page("compare.html", context)


def _ref(visit: Visit, written: str, field: str) -> PlanRef:
    """Return a plan by its reference or its id. Raises RequestError, UnknownPlan."""
    ref = visit.access.plan(written if ":" in written else f"{visit.scope}:{written}")
    if ref.scope != visit.scope:
        raise RequestError(
            f"{field}: {ref} is of another scope; only plans of one scope can be compared", field=field
        )
    return ref
