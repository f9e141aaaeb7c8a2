"""`planner scope index`: what a scope lacks after an upgrade is built once, as the doctor says."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.acceptance.running import Cli


@pytest.fixture
def upgraded(cli: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Run a command on a database whose scope `notes` has no lexical index."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    for name, text in (
        ("gate.md", "# Storm gate\n\nIt closes at 2.9 m.\n"),
        ("log.md", "See the storm gate.\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert cli("ingest", "notes", tmp_path / name).code == 0
    with psycopg.connect(database_url) as conn:
        conn.execute("UPDATE planner.scope SET lexical = NULL")
    return cli


def test_the_lexical_index_is_built_once(upgraded: Cli) -> None:
    (check,) = [c for c in upgraded("doctor", "--json").json["checks"] if c["name"] == "lexical indexes"]
    assert (check["ok"], check["remedy"]) == (None, "run `planner scope index notes --lexical`")
    built = upgraded("scope", "index", "notes", "--lexical", "--json").json
    assert built == {"lexical": {"scope": "notes", "tx": 4, "analysis": "terms/1", "added": 3, "mentions": 1}}
    again = upgraded("scope", "index", "notes", "--lexical")
    assert (again.code, again.out) == (0, "the lexical index of notes is there already\n")
    (check,) = [c for c in upgraded("doctor", "--json").json["checks"] if c["name"] == "lexical indexes"]
    assert check["ok"] is True


def test_both_indexes_are_built_where_none_is_asked_for(upgraded: Cli) -> None:
    first, second = upgraded("scope", "index", "notes").out.splitlines()
    assert first.startswith("the lexical index of notes is there from transaction 4 on: 3 texts added")
    assert second.startswith("embedding_hnsw_")


def test_an_unknown_scope_is_named(upgraded: Cli) -> None:
    ran = upgraded("scope", "index", "nobody", "--lexical")
    assert ran.code == 1
    assert "nobody" in ran.err
