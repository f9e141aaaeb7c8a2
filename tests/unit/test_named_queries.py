"""The named statements: each is described, named once and used; a place is filled, never pasted."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from psycopg import sql

import planner
from planner.store import queries as named
from planner.store.queries import compose, queries

SOURCES = [path.read_text(encoding="utf-8") for path in Path(planner.__file__).parent.rglob("*.py")]

Library = Callable[[str], dict[str, str]]


def test_every_statement_is_used_somewhere() -> None:
    literals = {name for text in SOURCES for name in re.findall(r"\"([a-z][a-z0-9_]*)\"", text)}
    assert len(queries()) > 40
    assert queries().keys() - literals == set()


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """Return a function that reads a library of statements with one more file."""

    def read(text: str) -> dict[str, str]:
        folder = tmp_path / "queries"
        folder.mkdir(exist_ok=True)
        (folder / "a.sql").write_text("-- name: first\n-- What is first.\nSELECT 1;\n", encoding="utf-8")
        (folder / "b.sql").write_text(text, encoding="utf-8")
        monkeypatch.setattr(named, "sql_dir", lambda: tmp_path)
        return dict(queries.__wrapped__())

    return read


def test_a_statement_is_read_without_its_prose_and_its_last_semicolon(library: Library) -> None:
    text = "-- About the file.\n\n-- name: second\n-- Two lines\n-- of prose.\nSELECT 2,\n3;\n"
    assert library(text) == {"first": "SELECT 1", "second": "SELECT 2,\n3"}


def test_a_second_statement_of_the_same_name_is_refused(library: Library) -> None:
    with pytest.raises(ValueError, match=r"b\.sql.*'first'"):
        library("-- name: first\n-- Again.\nSELECT 2;\n")
    with pytest.raises(ValueError, match="'twice'"):
        library("-- name: twice\n-- One.\nSELECT 1;\n-- name: twice\n-- Two.\nSELECT 2;\n")


def test_a_statement_without_a_description_is_refused(library: Library) -> None:
    with pytest.raises(ValueError, match=r"b\.sql.*'bare' has no description"):
        library("-- name: bare\nSELECT 2;\n")


def test_what_fills_a_place_is_quoted_and_every_place_is_filled() -> None:
    hostile = 'x"; DROP SCHEMA planner; --'
    assert '"x""; DROP SCHEMA planner; --"' in compose("analyze", tables=sql.Identifier(hostile)).as_string(
        None
    )
    with pytest.raises(KeyError):
        compose("analyze")
