"""Whether a plan still holds: decided again, made again, and compared with the bytes beneath it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.errors import IntegrityError, RequestError
from planner.surfaces.viewer.visit import Answer, Page, Visit
from planner.trace.drift import Replan

PARTS = ("replay", "replan", "verify")

CHANGES = 100
"""How many changes of the selection are listed."""


def verdict(visit: Visit) -> Answer:
    """Replay, replan and verify a plan: one `part` for a script to put into place, or all of them `now`.

    A large pool takes its time, so a page of its own comes first. Nothing is written.
    """
    part = visit.asked("part")
    plan = visit.planner.recorded(visit.plan).to_plan({})
    if part in PARTS:
        return Page("verdict_part.html", {"plan": plan, "part": part, **_asked(visit, part)})
    found = {name: _asked(visit, name) for name in PARTS} if visit.asked("now") else {}
    return Page("verdict.html", {"plan": plan, "parts": PARTS, "found": found})


def _asked(visit: Visit, part: str) -> Mapping[str, Any]:
    """Ask for one verdict; what speaks against it is an error or in the answer."""
    planner, ref = visit.planner, visit.plan
    ways: Mapping[str, Callable[[], Any]] = {
        "replay": lambda: planner.replay(ref),
        "replan": lambda: planner.replan(ref),
        "verify": lambda: planner.verify_plan(ref),
    }
    try:
        answer, error = ways[part](), None
    except (IntegrityError, RequestError) as raised:
        answer, error = None, raised
    moved = answer.changes[:CHANGES] if isinstance(answer, Replan) else ()
    texts = planner.texts(visit.scope, [change.ref for change in moved])
    return {"answer": answer, "error": error, "changes": list(zip(moved, texts, strict=True))}
