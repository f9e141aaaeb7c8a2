"""Row security as the catalogue has it and as each role meets it; and that the owner is not blind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
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
Become = Callable[[psycopg.Connection, str, UUID | str | None], AbstractContextManager[None]]


def _scopes_seen(conn: psycopg.Connection, table: str) -> set[UUID]:
    statement = sql.SQL("SELECT DISTINCT scope_id FROM planner.{}").format(sql.Identifier(table))
    return {scope_id for (scope_id,) in conn.execute(statement)}


def test_every_tenant_table_forces_row_security_and_has_exactly_the_two_policies(
    conn: psycopg.Connection,
) -> None:
    asked = """
        SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
               (SELECT array_agg(concat_ws(' ', p.polname, p.polcmd, p.polpermissive) ORDER BY p.polname)
                  FROM pg_policy p WHERE p.polrelid = c.oid)
          FROM pg_class c
         WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind IN ('r', 'p')
           AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'scope_id')
         ORDER BY c.relname COLLATE "C"
    """
    found = conn.execute(asked).fetchall()
    assert found == [(name, True, ["owner * t", "tenant * t"]) for name in TENANT_TABLES]


def test_every_view_runs_with_the_rights_of_who_reads_it_and_no_function_with_its_owners(
    conn: psycopg.Connection,
) -> None:
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


def test_a_role_sees_nothing_without_a_scope_and_only_its_own_with_one(
    conn: psycopg.Connection, become: Become
) -> None:
    for role, table in BY_ROLE:
        for unset in (None, ""):
            with become(conn, role, unset):
                assert _scopes_seen(conn, table) == set(), (role, table)
        with become(conn, role, A):
            assert _scopes_seen(conn, table) == {A}, (role, table)
        with become(conn, role, UUID(int=7)):
            assert _scopes_seen(conn, table) == set(), (role, table)


def test_views_show_nothing_without_a_scope_and_only_its_own_with_one(
    conn: psycopg.Connection, become: Become
) -> None:
    views = (
        "plan_overview",
        "plan_evidence",
        "plan_rejected",
        "plan_sources",
        "source_usage",
        "plan_latency",
    )
    for role in READABLE:
        for view in views:
            with become(conn, role, None):
                assert _scopes_seen(conn, view) == set(), (role, view)
            with become(conn, role, B):
                assert _scopes_seen(conn, view) == {B}, (role, view)


def test_a_scope_setting_that_is_no_uuid_is_an_error_not_an_opening(
    conn: psycopg.Connection, become: Become
) -> None:
    with pytest.raises(pg.InvalidTextRepresentation), become(conn, "planner_reader", "' OR true"):
        _scopes_seen(conn, "node")


def test_the_owner_sees_every_scope_in_every_table(conn: psycopg.Connection, become: Become) -> None:
    for table in TENANT_TABLES:
        with become(conn, "planner_owner", None):
            assert _scopes_seen(conn, table) == {A, B}, table


@pytest.mark.parametrize("role", ["planner_reader", "planner_inspector"])
def test_tokens_are_hidden_from_who_only_reads(conn: psycopg.Connection, become: Become, role: str) -> None:
    with pytest.raises(pg.InsufficientPrivilege), become(conn, role, A):
        _scopes_seen(conn, "api_token")


def test_a_writer_can_neither_add_to_another_scope_nor_touch_its_rows(
    conn: psycopg.Connection, become: Become
) -> None:
    add = "INSERT INTO planner.node (scope_id, node_id, tx_from, kind, label, attributes, confidence)"
    with pytest.raises(pg.InsufficientPrivilege), become(conn, "planner_writer", A):
        conn.execute(f"{add} VALUES (%s, 'x', 2, 'k', 'l', '{{}}', 1)", (B,))
    with become(conn, "planner_writer", A):
        assert conn.execute("UPDATE planner.node SET tx_to = 2 WHERE scope_id = %s", (B,)).rowcount == 0
        assert conn.execute("DELETE FROM planner.embedding WHERE scope_id = %s", (B,)).rowcount == 0
        assert conn.execute("UPDATE planner.node SET tx_to = 2").rowcount == 2
    with become(conn, "planner_owner", None):
        assert conn.execute("SELECT count(*) FROM planner.node WHERE tx_to = 2").fetchone() == (2,)


def test_history_and_trace_cannot_be_changed_by_any_role_but_the_owner(
    conn: psycopg.Connection, become: Become
) -> None:
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
            with pytest.raises(pg.InsufficientPrivilege), become(conn, role, A):
                conn.execute(statement)


def test_a_backfill_by_the_owner_reaches_every_row(conn: psycopg.Connection, become: Become) -> None:
    with become(conn, "planner_owner", None):
        assert conn.execute("UPDATE planner.node SET label = upper(label)").rowcount == 4


def test_a_foreign_key_that_the_owner_adds_is_checked_against_the_rows(
    conn: psycopg.Connection, become: Become
) -> None:
    with become(conn, "planner_owner", None):
        conn.execute("UPDATE planner.edge SET dst = 'nowhere' WHERE scope_id = %s", (B,))
    with pytest.raises(pg.ForeignKeyViolation), become(conn, "planner_owner", None):
        conn.execute(
            "ALTER TABLE planner.edge ADD CONSTRAINT edge_dst_fkey"
            " FOREIGN KEY (scope_id, dst, tx_from) REFERENCES planner.node (scope_id, node_id, tx_from)"
        )


def test_the_doctors_probe_looks_into_every_tenant_table() -> None:
    probe = queries()["foreign_rows"] + queries()["foreign_tokens"]
    assert [name for name in TENANT_TABLES if f"FROM planner.{name} WHERE" not in probe] == []
