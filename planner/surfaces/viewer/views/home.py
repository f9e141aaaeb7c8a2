"""Where people begin: the scopes, and what a scope's plans did lately."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from planner.surfaces.viewer.chart import columns, outcomes
from planner.surfaces.viewer.visit import Answer, Page, Redirect, Visit

SPANS: Mapping[str, tuple[str, timedelta, int]] = {
    "24h": ("24 hours", timedelta(hours=24), 24),
    "7d": ("7 days", timedelta(days=7), 28),
    "30d": ("30 days", timedelta(days=30), 30),
}
"""How far back an overview looks, and in how many columns."""


def scopes(visit: Visit) -> Answer:
    """List the scopes; who has a token is sent to its own, as is everybody where there is one."""
    if visit.access.grant is not None:
        return Redirect(visit.links.scope(visit.access.grant.scope))
    found = visit.planner.scopes()
    if len(found) == 1 and not visit.asked("all"):
        return Redirect(visit.links.scope(found[0].name))
    return Page("scopes.html", {"scopes": found})


def overview(visit: Visit) -> Answer:
    """Show what a scope's plans did: outcomes, budgets, times, the sources that they drew on."""
    asked = visit.asked("since") or "7d"
    chosen = asked if asked in SPANS else "7d"
    _, since, buckets = SPANS[chosen]
    found = visit.planner.overview(visit.scope, since, buckets=buckets)
    context = {
        "found": found,
        "spans": SPANS,
        "chosen": chosen,
        "outcomes": outcomes(found),
        "use": columns(found, lambda bucket: bucket.utilisation, 1.0),
        "latency": columns(found, lambda bucket: bucket.latency[1] if bucket.latency else None),
        "latest": visit.planner.plans(visit.scope, limit=6),
        "expected": visit.planner.expectations(visit.scope),
    }
    return Page("overview.html", context)
