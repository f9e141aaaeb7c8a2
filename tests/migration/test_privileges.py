"""Who may do what, as the catalogue has it, against a file that a reviewer reads."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

HERE = Path(__file__).parent


def _privileges(url: str) -> list[str]:
    with psycopg.connect(url) as conn:
        return [line for (line,) in conn.execute((HERE / "privileges.sql").read_text(encoding="utf-8"))]


def test_privileges_are_those_of_the_golden_file(template_url: str) -> None:
    assert _privileges(template_url) == (HERE / "privileges.golden").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    "grant",
    [
        "GRANT SELECT ON planner.api_token TO planner_reader",
        "GRANT UPDATE (detail) ON planner.ledger TO planner_writer",
        "GRANT USAGE ON SCHEMA planner TO PUBLIC",
        "GRANT EXECUTE ON FUNCTION planner.place(text) TO PUBLIC",
        "GRANT USAGE ON SEQUENCE planner.embedding_model_id_seq TO planner_reader",
        "ALTER TABLE planner.node OWNER TO planner_writer",
    ],
)
def test_a_further_privilege_shows(database_url: str, grant: str) -> None:
    before = _privileges(database_url)
    with psycopg.connect(database_url) as conn:
        conn.execute(grant)
    assert _privileges(database_url) != before
