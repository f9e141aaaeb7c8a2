"""The pages by their paths. Each is a function from a visit to what it shows; it runs in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.surfaces.viewer.views import (
    bundle,
    compare,
    expectations,
    home,
    plan,
    plans,
    pool,
    sources,
    text,
    verdict,
    why,
)
from planner.surfaces.viewer.visit import Answer, Visit

_SCOPE = "/scopes/{scope}"
_PLAN = f"{_SCOPE}/plans/{{plan}}"

PAGES: Mapping[str, Callable[[Visit], Answer]] = {
    "/": home.scopes,
    _SCOPE: home.overview,
    f"{_SCOPE}/plans": plans.plans,
    f"{_SCOPE}/compare": compare.compare,
    f"{_SCOPE}/sources": sources.sources,
    f"{_SCOPE}/source": text.text,
    f"{_SCOPE}/expectations": expectations.expectations,
    _PLAN: plan.plan,
    f"{_PLAN}/pool": pool.pool,
    f"{_PLAN}/recall": pool.recall,
    f"{_PLAN}/why": why.why,
    f"{_PLAN}/bundle": bundle.bundle,
    f"{_PLAN}/verdict": verdict.verdict,
}

FORMS: Mapping[str, Callable[[Visit], Answer]] = {
    f"{_SCOPE}/expectations": expectations.check,
    f"{_SCOPE}/expectations/remove": expectations.remove,
    f"{_PLAN}/expect": why.expect,
}
