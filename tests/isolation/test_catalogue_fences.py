"""Row security as the catalogue has it and as each role meets it; the owner's policy, without which the owner is blind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from planner.store.queries import queries
from planner.store.schema import metadata

A, B = UUID("aaaaaaaa-0000-8000-8000-000000000000"), UUID("bbbbbbbb-0000-8000-8000-000000000000")
TENANT_TABLES = sorted(t.name for t in metadata.tables.values() if "scope_id" in t.columns)
READABLE = {
    "planner_reader": [name for name in TENANT_TABLES if name != "api_token"],
    "planner_writer": TENANT_TABLES,
    "planner_inspector": ["plan", "plan_candidate", "scope", "source_version"],
}
BY_ROLE = [(role, table) for role, tables in READABLE.items() for table in tables]
ROWS = Path(__file__).parents[1] / "migration" / "rows.sql"


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    """A superuser's connection to a database with the same rows in scopes a and b."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        with _as(conn, "planner_owner", None):
            conn.execute(ROWS.read_text(encoding="utf-8"))
        yield conn


@contextmanager
def _as(conn: psycopg.Connection, role: str, scope: UUID | str | None) -> Iterator[None]:
    with conn.transaction():
        conn.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
        if scope is not None:
            conn.execute(sql.SQL("SET LOCAL planner.scope_id = {}").format(sql.Literal(str(scope))))
        yield


def _scopes_seen(conn: psycopg.Connection, table: str) -> set[UUID]:
    statement = sql.SQL("SELECT DISTINCT scope_id FROM planner.{}").format(sql.Identifier(table))
    return {scope_id for (scope_id,) in conn.execute(statement)}


def test_every_tenant_table_forces_row_security_and_has_exactly_the_two_policies(database_url: str) -> None:
    asked = """
        SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
               (SELECT array_agg(p.polname::text || p.polcmd::text || p.polpermissive::text ORDER BY p.polname)
                  FROM pg_policy p WHERE p.polrelid = c.oid)
          FROM pg_class c
         WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind IN ('r', 'p')
           AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'scope_id')
         ORDER BY c.relname COLLATE "C"
    """
    with psycopg.connect(database_url) as conn:
        found = conn.execute(asked).fetchall()
    assert found == [(name, True, ["owner*true", "tenant*true"]) for name in TENANT_TABLES]


def test_every_view_runs_with_the_rights_of_who_reads_it_and_no_function_with_its_owners(database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        views = conn.execute(
            "SELECT relname, reloptions FROM pg_class"
            " WHERE relnamespace = 'planner'::regnamespace AND relkind IN ('v', 'm')"
        ).fetchall()
        definers = conn.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'planner'::regnamespace AND prosecdef"
        ).fetchall()
    assert len(views) == 6
    assert [name for name, options in views if options != ["security_invoker=true"]] == []
    assert definers == []


def test_a_role_sees_nothing_without_a_scope_and_only_its_own_with_one(conn: psycopg.Connection) -> None:
    for role, table in BY_ROLE:
        for unset in (None, ""):
            with _as(conn, role, unset):
                assert _scopes_seen(conn, table) == set(), (role, table)
        with _as(conn, role, A):
            assert _scopes_seen(conn, table) == {A}, (role, table)
        with _as(conn, role, UUID(int=7)):
            assert _scopes_seen(conn, table) == set(), (role, table)


def test_views_show_nothing_without_a_scope_and_only_its_own_with_one(conn: psycopg.Connection) -> None:
    views = ("plan_overview", "plan_evidence", "plan_rejected", "plan_sources", "source_usage", "plan_latency")
    for role in READABLE:
        for view in views:
            with _as(conn, role, None):
                assert _scopes_seen(conn, view) == set(), (role, view)
            with _as(conn, role, B):
                assert _scopes_seen(conn, view) == {B}, (role, view)


def test_a_scope_setting_that_is_no_uuid_is_an_error_not_an_opening(conn: psycopg.Connection) -> None:
    with pytest.raises(pg.InvalidTextRepresentation), _as(conn, "planner_reader", "' OR true"):
        _scopes_seen(conn, "node")


def test_the_owner_sees_every_scope_in_every_table(conn: psycopg.Connection) -> None:
    for table in TENANT_TABLES:
        with _as(conn, "planner_owner", None):
            assert _scopes_seen(conn, table) == {A, B}, table


@pytest.mark.parametrize("role", ["planner_reader", "planner_inspector"])
def test_tokens_are_hidden_from_who_only_reads(conn: psycopg.Connection, role: str) -> None:
    with pytest.raises(pg.InsufficientPrivilege), _as(conn, role, A):
        _scopes_seen(conn, "api_token")


def test_a_writer_can_neither_add_to_another_scope_nor_touch_its_rows(conn: psycopg.Connection) -> None:
    add = "INSERT INTO planner.node (scope_id, node_id, tx_from, kind, label, attributes, confidence)"
    with pytest.raises(pg.InsufficientPrivilege), _as(conn, "planner_writer", A):
        conn.execute(f"{add} VALUES (%s, 'x', 2, 'k', 'l', '{{}}', 1)", (B,))
    with _as(conn, "planner_writer", A):
        assert conn.execute("UPDATE planner.node SET tx_to = 2 WHERE scope_id = %s", (B,)).rowcount == 0
        assert conn.execute("DELETE FROM planner.embedding WHERE scope_id = %s", (B,)).rowcount == 0
        assert conn.execute("UPDATE planner.node SET tx_to = 2").rowcount == 2
    with _as(conn, "planner_owner", None):
        assert conn.execute("SELECT count(*) FROM planner.node WHERE tx_to = 2").fetchone() == (2,)


def test_history_and_trace_cannot_be_changed_by_any_role_but_the_owner(conn: psycopg.Connection) -> None:
    for role in ("planner_writer", "planner_reader"):
        for statement in (
            "UPDATE planner.ledger SET detail = '{}'",
            "DELETE FROM planner.ledger",
            "UPDATE planner.plan SET used = 0",
            "UPDATE planner.plan_candidate SET outcome = 'selected'",
            "DELETE FROM planner.plan",
            "UPDATE planner.source_version SET text_hash = text_hash",
            "DELETE FROM planner.span",
            "TRUNCATE planner.node CASCADE",
        ):
            with pytest.raises(pg.InsufficientPrivilege), _as(conn, role, A):
                conn.execute(statement)


def test_a_backfill_by_the_owner_reaches_every_row(conn: psycopg.Connection) -> None:
    with _as(conn, "planner_owner", None):
        assert conn.execute("UPDATE planner.node SET label = upper(label)").rowcount == 4


def test_a_foreign_key_that_the_owner_adds_is_checked_against_the_rows(conn: psycopg.Connection) -> None:
    with _as(conn, "planner_owner", None):
        conn.execute("UPDATE planner.edge SET dst = 'nowhere' WHERE scope_id = %s", (B,))
    with pytest.raises(pg.ForeignKeyViolation), _as(conn, "planner_owner", None):
        conn.execute(
            "ALTER TABLE planner.edge ADD CONSTRAINT edge_dst_fkey"
            " FOREIGN KEY (scope_id, dst, tx_from) REFERENCES planner.node (scope_id, node_id, tx_from)"
        )


def test_the_doctors_probe_looks_into_every_tenant_table() -> None:
    probe = queries()["foreign_rows"] + queries()["foreign_tokens"]
    assert [name for name in TENANT_TABLES if f"FROM planner.{name} WHERE" not in probe] == []
