"""The views of the trace and the slice API, read as the roles that they are for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql
from psycopg.rows import dict_row

A, B = UUID("aaaaaaaa-0000-8000-8000-000000000000"), UUID("bbbbbbbb-0000-8000-8000-000000000000")
PLAN = UUID("01900000-0000-7000-8000-000000000001")
ROWS = Path(__file__).parents[1] / "migration" / "rows.sql"
SLICE = "SELECT planner.canonical_slice(%s, %s, %s, %s, %s) AS text"
SPAN = "SELECT ordinal FROM planner.span_row(%s, %s, %s, %s, %s)"


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as conn:
        with _as(conn, "planner_owner"):
            conn.execute(ROWS.read_text(encoding="utf-8"))
        yield conn


@contextmanager
def _as(conn: psycopg.Connection, role: str, scope: UUID = A) -> Iterator[None]:
    with conn.transaction():
        conn.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
        conn.execute(sql.SQL("SET LOCAL planner.scope_id = {}").format(sql.Literal(str(scope))))
        yield


def _rows(conn: psycopg.Connection, role: str, statement: str, *values: object) -> list[dict[str, Any]]:
    with _as(conn, role), conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement, values).fetchall()


def _erase(conn: psycopg.Connection) -> None:
    with _as(conn, "planner_writer"):
        conn.execute(
            "UPDATE planner.source_version SET body = NULL, title = NULL, uri = NULL, attributes = '{}', erased_tx = 2"
            " WHERE scope_id = %s AND source_id = 'doc.md'",
            (A,),
        )


def test_the_overview_shows_a_plan_by_its_reference_and_its_question(conn: psycopg.Connection) -> None:
    (row,) = _rows(conn, "planner_inspector", "SELECT * FROM planner.plan_overview")
    assert row["plan"] == f"a:{PLAN}"
    assert row["question"] == "who greets?"
    assert (row["used"], row["budget"], row["n_selected"], row["n_candidates"]) == (3, 10, 1, 3)
    assert row["plan_hash"] == "33" * 32


def test_evidence_is_the_text_of_the_source_now_and_is_gone_once_it_is_erased(conn: psycopg.Connection) -> None:
    asked = "SELECT title, text, origin_erased, tokens FROM planner.plan_evidence ORDER BY selection_order"
    expected = {"title": "A title", "text": "Grüße", "origin_erased": False, "tokens": 3}
    assert _rows(conn, "planner_inspector", asked) == [expected]
    _erase(conn)
    expected = {"title": None, "text": None, "origin_erased": True, "tokens": 3}
    assert _rows(conn, "planner_inspector", asked) == [expected]


def test_a_rejected_duplicate_names_the_span_that_stands_for_it(conn: psycopg.Connection) -> None:
    asked = """SELECT rank, outcome, duplicate_of_rank, duplicate_of_source_id, duplicate_of_start, duplicate_of_end
                 FROM planner.plan_rejected ORDER BY rank"""
    assert [tuple(row.values()) for row in _rows(conn, "planner_inspector", asked)] == [
        (1, "duplicate", 0, "doc.md", 0, 7),
        (2, "over_budget", None, None, None, None),
    ]


def test_the_budget_is_told_by_source_against_the_cap(conn: psycopg.Connection) -> None:
    asked = "SELECT source_id, n_candidates, n_selected, tokens, share_of_cap, share_of_budget FROM planner.plan_sources"
    (row,) = _rows(conn, "planner_inspector", asked)
    assert tuple(row.values()) == ("doc.md", 3, 1, 3, 0.75, 0.3)


def test_a_source_tells_which_plans_used_it(conn: psycopg.Connection) -> None:
    asked = "SELECT plan_id, question, n_selected, tokens FROM planner.source_usage WHERE source_id = 'doc.md'"
    (row,) = _rows(conn, "planner_inspector", asked)
    assert tuple(row.values()) == (PLAN, "who greets?", 1, 3)


def test_latency_is_a_row_a_stage(conn: psycopg.Connection) -> None:
    asked = "SELECT stage, milliseconds FROM planner.plan_latency ORDER BY stage"
    rows = _rows(conn, "planner_inspector", asked)
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
def test_a_slice_is_exactly_its_bytes_or_null(
    conn: psycopg.Connection, start: int, end: int, text: str | None
) -> None:
    assert _rows(conn, "planner_reader", SLICE, A, "doc.md", 1, start, end) == [{"text": text}]


def test_a_slice_that_cuts_a_character_is_an_error(conn: psycopg.Connection) -> None:
    with pytest.raises(pg.CharacterNotInRepertoire):
        _rows(conn, "planner_reader", SLICE, A, "doc.md", 1, 0, 3)


def test_a_foreign_a_missing_and_an_erased_source_answer_alike(conn: psycopg.Connection) -> None:
    foreign = _rows(conn, "planner_reader", SLICE, B, "doc.md", 1, 0, 5)
    missing = _rows(conn, "planner_reader", SLICE, A, "no.md", 1, 0, 5)
    _erase(conn)
    assert foreign == missing == _rows(conn, "planner_reader", SLICE, A, "doc.md", 1, 0, 5) == [{"text": None}]


def test_a_row_of_the_ledger_is_found_by_its_whole_key_alone(conn: psycopg.Connection) -> None:
    assert _rows(conn, "planner_reader", SPAN, A, "doc.md", 1, 7, 14) == [{"ordinal": 1}]
    for foreign in ((B, "doc.md", 1, 7, 14), (A, "doc.md", 2, 7, 14), (A, "doc.md", 1, 7, 13), (A, "x", 1, 7, 14)):
        assert _rows(conn, "planner_reader", SPAN, *foreign) == []


def test_the_inspector_has_the_views_but_not_the_slice_api(conn: psycopg.Connection) -> None:
    with pytest.raises(pg.InsufficientPrivilege):
        _rows(conn, "planner_inspector", SLICE, A, "doc.md", 1, 0, 5)
