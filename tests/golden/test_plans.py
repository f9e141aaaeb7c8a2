"""A plan by the exact method is the same on every server: PostgreSQL 18 and 17, pgvector 0.8.6 and 0.8.0."""

from __future__ import annotations

from planner import Planner
from tests.golden.plans import expected, hashes


def test_the_plans_of_the_shipped_corpus_are_those_on_file(database_url: str) -> None:
    with Planner.connect(database_url) as planner:
        assert hashes(planner) == expected()
