"""Texts of a few paragraphs, of which the one in the middle is evidence."""

from __future__ import annotations

from planner import EvidencePlan, Planner
from tests.integration.graph import ask

FILLER = "word " * 60


def article(name: str, near: int) -> str:
    """Return a text of seven paragraphs, of which the fourth is the nearest to the question."""
    parts = [f"The {i}. of {name}: {FILLER}at {near if i == 3 else 120 + i}" for i in range(7)]
    return "\n\n".join(parts)


def plan_of_two(planner: Planner, scope: str) -> EvidencePlan:
    """Return a plan of two spans, each from the middle of a text of its own."""
    for name, near in (("a.txt", 0), ("b.txt", 10)):
        planner.ingest_text(scope, name, article(name, near), title=f"Title of {name}")
    plan = ask(planner, scope, hops=0, k=2, budget_tokens=4_000)
    assert [span.verdict.candidate.source_id for span in plan.spans] == ["a.txt", "b.txt"]
    return plan
