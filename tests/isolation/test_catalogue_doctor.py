"""The doctor finds nothing in a sound database, each kind of damage by its name, and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
import pytest

from planner.store.doctor import Check, examine


def _found(database: str | psycopg.Connection) -> Mapping[str, Check]:
    return {check.name: check for check in examine(database)}


def test_a_sound_database_has_no_finding_that_is_wrong(conn: psycopg.Connection) -> None:
    found = _found(conn)
    assert [check for check in found.values() if check.ok is False] == []
    assert found["login"].ok is None  # the tests connect as a superuser, and the doctor says so
    assert "only its own" in found["row security tried"].detail
    assert {"server", "pgvector", "roles", "schema", "objects", "edges", "ledger", "live nodes"} <= set(found)


@pytest.mark.parametrize(
    ("damage", "name", "said"),
    [
        ("ALTER TABLE planner.node NO FORCE ROW LEVEL SECURITY", "row security", "node"),
        ("ALTER TABLE planner.edge DISABLE ROW LEVEL SECURITY", "row security tried", "edge (as reader)"),
        (
            "ALTER TABLE planner.api_token DISABLE ROW LEVEL SECURITY",
            "row security tried",
            "api_token (as writer)",
        ),
        ("DROP POLICY owner ON planner.span", "row security", "span"),
        ("CREATE POLICY all_of_it ON planner.plan USING (true)", "row security tried", "plan (as reader)"),
        ("UPDATE planner.alembic_version SET version_num = '9999_future'", "schema", "9999_future"),
        ("DELETE FROM planner.alembic_version", "schema", "no revision"),
        ("COMMENT ON SCHEMA planner IS NULL", "objects", "another version"),
        ("DELETE FROM planner.ledger WHERE tx = 2", "ledger", "a: 1 entries for 2"),
        ("UPDATE planner.scope SET live_nodes = 7 WHERE name = 'b'", "live nodes", "b: 7 kept, 2 counted"),
        (
            "UPDATE planner.scope SET lexical_nodes = 7 WHERE name = 'b'",
            "lexical indexes",
            "b: 5 nodes and 0",
        ),
        (
            "UPDATE planner.scope SET lexical_terms = 7 WHERE name = 'b'",
            "lexical indexes",
            "b: 0 nodes and 3",
        ),
        (
            "DELETE FROM planner.lexical WHERE node_id = 'n1'",
            "lexical indexes",
            "1 rows missing or left over",
        ),
        (
            "UPDATE planner.node SET tx_to = 2 WHERE node_id = 'n1'",
            "lexical indexes",
            "a: 0 nodes and 0 terms",
        ),
        ("DELETE FROM planner.term WHERE term = 8", "lexical indexes", "1 terms miscounted"),
        ("DELETE FROM planner.posting WHERE term = 8", "lexical indexes", "1 terms miscounted"),
    ],
)
def test_damage_is_found_by_name(conn: psycopg.Connection, damage: str, name: str, said: str) -> None:
    conn.execute(damage)
    check = _found(conn)[name]
    assert check.ok is False
    assert said in check.detail
    assert check.remedy


def test_an_index_that_failed_to_build_is_found(conn: psycopg.Connection) -> None:
    index = (
        "CREATE INDEX embedding_hnsw_a ON planner.embedding USING hnsw ((vec::vector(3)) vector_cosine_ops)"
    )
    conn.execute(index)
    assert _found(conn)["vector indexes"].ok is True
    conn.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'planner.embedding_hnsw_a'::regclass"
    )
    check = _found(conn)["vector indexes"]
    assert check.ok is False
    assert "DROP INDEX CONCURRENTLY planner.embedding_hnsw_a" in (check.remedy or "")


def test_a_scope_without_a_lexical_index_is_told_with_what_builds_it(conn: psycopg.Connection) -> None:
    assert _found(conn)["lexical indexes"].ok is True
    conn.execute("UPDATE planner.scope SET lexical = NULL WHERE name = 'b'")
    check = _found(conn)["lexical indexes"]
    assert check.ok is None
    assert check.remedy == "run `planner scope index b --lexical`"


def test_edges_without_an_end_are_told_but_not_wrong(conn: psycopg.Connection) -> None:
    conn.execute("UPDATE planner.node SET tx_to = 2 WHERE node_id = 'n2'")
    check = _found(conn)["edges"]
    assert check.ok is None
    assert "1 in a, 1 in b" in check.detail


def test_a_database_without_schema_or_that_does_not_exist_is_a_finding(
    template_url: str, empty_database_url: str
) -> None:
    found = _found(empty_database_url)
    assert found["pgvector"].ok is False
    assert found["schema"].ok is False
    assert found["schema"].remedy == "run `planner migrate`"
    assert _found("postgresql://nobody@127.0.0.1:1/none")["database"].ok is False


def test_a_login_that_is_no_member_learns_what_to_grant(conn: psycopg.Connection) -> None:
    conn.execute("CREATE ROLE doctor_stranger")
    conn.execute("SET ROLE doctor_stranger")
    found = _found(conn)
    assert found["login"].ok is True
    assert found["roles"].ok is False
    assert 'TO "doctor_stranger"' in (found["roles"].remedy or "")


def test_an_application_login_sees_row_security_in_force(app_login_url: str) -> None:
    found = _found(app_login_url)
    assert found["login"].ok is True
    assert found["row security tried"].ok is True
    assert [check for check in found.values() if check.ok is False] == []


def test_a_role_that_could_bypass_row_security_is_found(conn: psycopg.Connection) -> None:
    conn.execute("ALTER ROLE planner_inspector BYPASSRLS")
    check = _found(conn)["roles"]
    assert check.ok is False
    assert "planner_inspector" in check.detail


def test_examining_a_connection_leaves_its_session_as_it_was(two_tenants_url: str) -> None:
    with psycopg.connect(two_tenants_url, autocommit=True) as conn:
        examine(conn)
        row = conn.execute("SELECT current_user::text, current_setting('planner.scope_id', true)").fetchone()
        assert row is not None
        assert row[0] == conn.info.user
        assert not row[1]
        conn.execute("CREATE TEMPORARY TABLE still_writable ()")
