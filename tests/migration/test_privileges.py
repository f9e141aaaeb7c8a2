"""Who may do what, as the catalogue has it, against a file that a reviewer reads."""

from __future__ import annotations

from pathlib import Path

import psycopg

HERE = Path(__file__).parent


FURTHER = (
    "GRANT SELECT ON planner.api_token TO planner_reader",
    "GRANT UPDATE (detail) ON planner.ledger TO planner_writer",
    "GRANT USAGE ON SCHEMA planner TO PUBLIC",
    "GRANT EXECUTE ON FUNCTION planner.place(text) TO PUBLIC",
    "GRANT USAGE ON SEQUENCE planner.embedding_model_id_seq TO planner_reader",
    "ALTER TABLE planner.node OWNER TO planner_writer",
    "ALTER ROLE planner_reader LOGIN",
)


def _privileges(conn: psycopg.Connection) -> list[str]:
    return [line for (line,) in conn.execute((HERE / "privileges.sql").read_text(encoding="utf-8"))]


def test_privileges_are_those_of_the_golden_file_and_a_further_one_shows(database_url: str) -> None:
    golden = (HERE / "privileges.golden").read_text(encoding="utf-8").splitlines()
    with psycopg.connect(database_url) as conn:
        assert _privileges(conn) == golden
        for statement in FURTHER:
            with conn.transaction(force_rollback=True):
                conn.execute(statement)
                assert _privileges(conn) != golden, statement
