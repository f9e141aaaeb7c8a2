"""The views of the trace and the slice API, read as the roles that they are for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg
from psycopg.rows import dict_row

A, B = UUID("aaaaaaaa-0000-8000-8000-000000000000"), UUID("bbbbbbbb-0000-8000-8000-000000000000")
PLAN = UUID("01900000-0000-7000-8000-000000000001")
Become = Callable[[psycopg.Connection, str, UUID | str | None], AbstractContextManager[None]]
SLICE = "SELECT planner.canonical_slice(%s, %s, %s, %s, %s) AS text"
SPAN = "SELECT ordinal FROM planner.span_row(%s, %s, %s, %s, %s)"


Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def ask(conn: psycopg.Connection, become: Become) -> Ask:
    """Return a function that runs a statement as a role in scope a and returns its rows by column."""

    def rows(role: str, statement: str, *values: object) -> list[dict[str, Any]]:
        with become(conn, role, A), conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement, values).fetchall()

    return rows


@pytest.fixture
def erase(conn: psycopg.Connection, become: Become) -> Callable[[], None]:
    """Return a function that empties the version of doc.md in scope a, as a writer may."""

    def run() -> None:
        with become(conn, "planner_writer", A):
            conn.execute(
                "UPDATE planner.source_version SET body = NULL, title = NULL, uri = NULL, attributes = '{}',"
                " erased_tx = 2 WHERE scope_id = %s AND source_id = 'doc.md'",
                (A,),
            )

    return run


def test_the_overview_shows_a_plan_by_its_reference_and_its_question(ask: Ask) -> None:
    (row,) = ask("planner_inspector", "SELECT * FROM planner.plan_overview")
    assert row["plan"] == f"a:{PLAN}"
    assert row["question"] == "who greets?"
    assert (row["used"], row["budget"], row["n_selected"], row["n_candidates"]) == (3, 10, 1, 3)
    assert row["plan_hash"] == "33" * 32


def test_evidence_is_the_text_of_the_source_now_and_is_gone_once_it_is_erased(
    ask: Ask, erase: Callable[[], None]
) -> None:
    asked = "SELECT title, text, origin_erased, tokens FROM planner.plan_evidence ORDER BY selection_order"
    expected = {"title": "A title", "text": "Grüße", "origin_erased": False, "tokens": 3}
    assert ask("planner_inspector", asked) == [expected]
    erase()
    expected = {"title": None, "text": None, "origin_erased": True, "tokens": 3}
    assert ask("planner_inspector", asked) == [expected]


def test_a_rejected_duplicate_names_the_span_that_stands_for_it(ask: Ask) -> None:
    asked = """
        SELECT rank, outcome, duplicate_of_rank, duplicate_of_source_id, duplicate_of_start, duplicate_of_end
          FROM planner.plan_rejected ORDER BY rank
    """
    assert [tuple(row.values()) for row in ask("planner_inspector", asked)] == [
        (1, "duplicate", 0, "doc.md", 0, 7),
        (2, "over_budget", None, None, None, None),
    ]


def test_the_budget_is_told_by_source_against_the_cap(ask: Ask) -> None:
    asked = """
        SELECT source_id, n_candidates, n_selected, tokens, share_of_cap, share_of_budget
          FROM planner.plan_sources
    """
    (row,) = ask("planner_inspector", asked)
    assert tuple(row.values()) == ("doc.md", 3, 1, 3, 0.75, 0.3)


def test_a_source_tells_which_plans_used_it(ask: Ask) -> None:
    asked = (
        "SELECT plan_id, question, n_selected, tokens FROM planner.source_usage WHERE source_id = 'doc.md'"
    )
    (row,) = ask("planner_inspector", asked)
    assert tuple(row.values()) == (PLAN, "who greets?", 1, 3)


def test_latency_is_a_row_a_stage(ask: Ask) -> None:
    asked = "SELECT stage, milliseconds FROM planner.plan_latency ORDER BY stage"
    rows = ask("planner_inspector", asked)
    assert [tuple(row.values()) for row in rows] == [("recall", 1.5), ("select", 0.25)]


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (0, 14, "Grüße, world"),
        (0, 7, "Grüße"),
        (9, 14, "world"),
        (3, 3, ""),
        (0, 15, None),
        (-1, 3, None),
        (7, 3, None),
        (2**62, 2**62 + 1, None),
    ],
)
def test_a_slice_is_exactly_its_bytes_or_null(ask: Ask, start: int, end: int, text: str | None) -> None:
    assert ask("planner_reader", SLICE, A, "doc.md", 1, start, end) == [{"text": text}]


def test_a_slice_that_cuts_a_character_is_an_error(ask: Ask) -> None:
    with pytest.raises(pg.CharacterNotInRepertoire):
        ask("planner_reader", SLICE, A, "doc.md", 1, 0, 3)


def test_a_foreign_a_missing_and_an_erased_source_answer_alike(ask: Ask, erase: Callable[[], None]) -> None:
    foreign = ask("planner_reader", SLICE, B, "doc.md", 1, 0, 5)
    missing = ask("planner_reader", SLICE, A, "no.md", 1, 0, 5)
    erase()
    assert foreign == missing == ask("planner_reader", SLICE, A, "doc.md", 1, 0, 5) == [{"text": None}]


def test_a_row_of_the_ledger_is_found_by_its_whole_key_alone(ask: Ask) -> None:
    assert ask("planner_reader", SPAN, A, "doc.md", 1, 7, 14) == [{"ordinal": 1}]
    for foreign in (
        (B, "doc.md", 1, 7, 14),
        (A, "doc.md", 2, 7, 14),
        (A, "doc.md", 1, 7, 13),
        (A, "x", 1, 7, 14),
    ):
        assert ask("planner_reader", SPAN, *foreign) == []


def test_the_inspector_has_the_views_but_not_the_slice_api(ask: Ask) -> None:
    with pytest.raises(pg.InsufficientPrivilege):
        ask("planner_inspector", SLICE, A, "doc.md", 1, 0, 5)
