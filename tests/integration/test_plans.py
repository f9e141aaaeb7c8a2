"""The list of a scope's plans: all of them once, newest first, whatever the pages and the filters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from planner import Planner, Settings
from planner.errors import InsufficientEvidence, RequestError, UnknownScope
from planner.ingest import scope_id
from planner.pipeline.plans import BEYOND, FIRST
from planner.store.queries import query
from planner.types import EvidencePlan
from tests.integration.graph import Connection, ask, circle_embedder, fan

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS = ("Where is the Harbour at 0", "where does the storm begin at 30", "HARBOUR dues at 0")


class Ticking:
    """A clock that moves a minute each time it is asked."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture(scope="module")
def lived(module_database_url: str) -> Iterator[tuple[Planner, list[str]]]:
    """Give a planner and the references of its plans in scope `s`, oldest first: the last was refused."""
    clock = Ticking()
    with Planner.connect(
        module_database_url, settings=Settings(), embedder=circle_embedder(), clock=clock
    ) as planner:
        fan(0, 30).into(planner, "s")
        fan(0).into(planner, "other")
        made = [str(ask(planner, "s", text=text).ref) for text in QUESTIONS]
        made.append(str(ask(planner, "s", parts=["at 30", "Harbour at 0"]).ref))
        made.append(str(ask(planner, "s").ref))
        ask(planner, "other", text=QUESTIONS[0])
        with pytest.raises(InsufficientEvidence) as refused:
            planner.plan("s", "Harbour at 0", budget_tokens=1)
        made.append(str(refused.value.plan))
        yield planner, made


Lived = tuple[Planner, list[str]]


def refs(page: Any) -> list[str]:
    return [str(plan.ref) for plan in page.plans]


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7])
def test_pages_hold_every_plan_once_newest_first(lived: Lived, limit: int) -> None:
    planner, made = lived
    found: list[str] = []
    after: str | None = None
    while True:
        page = planner.plans("s", after=after, limit=limit)
        assert len(page.plans) <= limit
        found += refs(page)
        after = page.next_after
        if after is None:
            break
        assert after == page.plans[-1].ref.plan_id
    assert found == made[::-1]


def test_a_line_says_what_the_plan_says(lived: Lived) -> None:
    planner, made = lived
    lines = {str(line.ref): line.to_dict() for line in planner.plans("s").plans}
    assert set(lines) == set(made)
    for ref in made:
        plan: EvidencePlan = planner.load(ref)
        whole, line = plan.to_dict(), lines[ref]
        assert {name: line[name] for name in line.keys() & whole.keys()} == {
            name: whole[name] for name in line.keys() & whole.keys()
        }
        assert line["error_code"] == (plan.error or {}).get("code")
        assert line["candidates"] == plan.stats["candidates"] == sum(line["counts"].values())
        assert line["counts"] == {name: plan.stats[name] for name in line["counts"]}
        assert line["took_ms"] == pytest.approx(sum(plan.timings.values()))
    assert [line.question for line in planner.plans("s").plans] == [
        "Harbour at 0",
        None,
        "at 30",
        *QUESTIONS[::-1],
    ]


def test_filters_leave_in_what_they_say(lived: Lived) -> None:
    planner, made = lived
    assert refs(planner.plans("s", outcome="refused")) == [made[5]]
    assert refs(planner.plans("s", text="harbour")) == [made[5], made[2], made[0]]
    assert refs(planner.plans("s", text="%")) == []
    times = {str(line.ref): line.created_at for line in planner.plans("s").plans}
    since, until = times[made[1]], times[made[4]]
    assert refs(planner.plans("s", since=since, until=until)) == made[1:4][::-1]
    assert refs(planner.plans("s", since=until, until=since)) == []
    before_all = BEGIN - timedelta(days=40_000)
    assert refs(planner.plans("s", until=before_all)) == []
    assert refs(planner.plans("s", since=before_all)) == made[::-1]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", 0),
        ("limit", 1_001),
        ("outcome", "PLANNED"),
        ("after", "not an id"),
        ("text", ""),
        ("text", "\0"),
        ("text", "x" * 1_001),
        ("since", datetime(2026, 1, 1)),
        ("until", datetime(2026, 1, 1)),
    ],
)
def test_what_is_no_argument_is_named(lived: Lived, field: str, value: object) -> None:
    with pytest.raises(RequestError) as refused:
        lived[0].plans("s", **{field: value})  # type: ignore[arg-type]
    assert refused.value.detail["field"] == field


def test_a_scope_that_is_not_there_is_unknown_and_another_shows_its_own(lived: Lived) -> None:
    planner, made = lived
    with pytest.raises(UnknownScope):
        planner.plans("nowhere")
    assert not set(refs(planner.plans("other"))) & set(made)


def test_a_page_is_read_from_the_primary_key_backwards(lived: Lived, module_database_url: str) -> None:
    params = {"scope_id": scope_id("s"), "first": FIRST, "before": BEYOND, "outcome": None, "text": None}
    with psycopg.connect(module_database_url) as conn:
        conn.execute("SET enable_seqscan = off")
        explain = sql.SQL("EXPLAIN (COSTS OFF) ") + query("list_plans")
        said = "\n".join(str(row[0]) for row in conn.execute(explain, {**params, "limit": 51}))
    assert "Index Scan Backward using plan_pkey" in said
    assert "Sort" not in said


def test_what_is_asked_for_is_watched_once_whatever_came_of_it(database_url: str, other: Connection) -> None:
    seen: list[str] = []
    settings = Settings(unit="auto")
    with Planner.connect(database_url, settings=settings, embedder=circle_embedder()) as opened:
        planner = Planner(replace(opened.engine, observe=lambda record: seen.append(record.outcome)))
        fan(0, 30).into(planner, "s")
        planner.plan("s", "at 0")
        planner.context("s", "at 0", budget_tokens=1_000)
        with pytest.raises(InsufficientEvidence):
            planner.context("s", "at 0", budget_tokens=30)
        with pytest.raises(RequestError):
            planner.plan("s", "at 0", hops=9)
    rows = other.execute("SELECT outcome FROM planner.plan ORDER BY plan_id").fetchall()
    assert seen == [outcome for (outcome,) in rows]
    assert len(seen) == 3
