"""Migrating: one at a time, by whoever may, or refused in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from planner.errors import (
    MigrationBusy,
    MissingRoles,
    SchemaAhead,
    SchemaBehind,
    StoreError,
    StoreUnavailable,
    UnsupportedServer,
)
from planner.store import upgrade
from planner.store.objects import ROLES
from planner.store.resources import head_revision, revisions
from planner.store.upgrade import check, migrate

NewDatabase = Callable[[], str]
SchemaOf = Callable[[str], str]


def _login(url: str, name: str, *, attributes: str = "", owner: bool = True) -> str:
    """Make a login that is no superuser, by default the owner of the database; return its URL."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'pw' " + attributes).format(sql.Identifier(name)))
        if owner:
            database = sql.Identifier(conn.info.dbname)
            conn.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, sql.Identifier(name)))
    return make_url(url).set(username=name, password="pw").render_as_string(hide_password=False)


def _run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement)


def test_an_empty_database_is_behind_and_reading_its_status_changes_nothing(
    empty_database_url: str, schema_of: SchemaOf
) -> None:
    before = schema_of(empty_database_url)
    status = check(empty_database_url)
    assert (status.current, status.head, status.up_to_date) == (None, head_revision(), False)
    with pytest.raises(SchemaBehind, match="planner migrate"):
        status.require_current()
    assert schema_of(empty_database_url) == before


def test_a_migrated_database_is_current(database_url: str) -> None:
    status = check(database_url)
    assert status.up_to_date
    assert status.pending == ()
    status.require_current()


def test_a_revision_of_a_newer_version_is_refused_and_left_alone(
    database_url: str, schema_of: SchemaOf
) -> None:
    _run(database_url, "UPDATE planner.alembic_version SET version_num = '9999_future'")
    before = schema_of(database_url)
    with pytest.raises(SchemaAhead, match="9999_future"):
        migrate(database_url)
    with pytest.raises(SchemaAhead):
        check(database_url).require_current()
    assert schema_of(database_url) == before


def test_objects_of_another_version_make_a_database_not_current(database_url: str) -> None:
    _run(database_url, "COMMENT ON SCHEMA planner IS 'evidence-planner objects 00'")
    with pytest.raises(SchemaBehind, match="views, functions"):
        check(database_url).require_current()


def test_two_migrations_of_one_database_at_once_both_succeed(
    empty_database_url: str, template_url: str, schema_of: SchemaOf
) -> None:
    with ThreadPoolExecutor(2) as threads:
        reports = list(threads.map(migrate, [empty_database_url] * 2))
    assert sorted(len(report.applied) for report in reports) == [0, len(revisions())]
    assert schema_of(empty_database_url) == schema_of(template_url)


def test_four_databases_of_a_cluster_that_has_no_roles_can_be_migrated_at_once(
    roleless_database: NewDatabase,
) -> None:
    urls = [roleless_database() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(migrate, urls))
    assert all(check(url).up_to_date for url in urls)


def test_a_migration_gives_up_where_another_one_does_not_end(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("SELECT pg_advisory_lock(%s)", (upgrade.LOCK_KEY,))
        with pytest.raises(MigrationBusy, match="another migration"):
            migrate(database_url, patience=0.2)
    migrate(database_url, patience=5)


def test_a_migration_does_not_wait_long_behind_a_reader_and_leaves_nothing_half_done(
    database_url: str, schema_of: SchemaOf
) -> None:
    before = schema_of(database_url)
    with psycopg.connect(database_url) as reader:
        reader.execute("LOCK TABLE planner.node IN ACCESS SHARE MODE")
        with pytest.raises(StoreError, match="lock"):
            migrate(database_url)
    assert schema_of(database_url) == before


def test_an_upgrade_gives_up_behind_a_writer_that_does_not_end_and_can_be_repeated(
    released_database: Callable[[str], str],
) -> None:
    url = released_database("0001_spine")
    with psycopg.connect(url) as writer:
        writer.execute("LOCK TABLE planner.scope IN ROW EXCLUSIVE MODE")
        with pytest.raises(StoreError, match="lock"):
            migrate(url)
        writer.rollback()
        assert writer.execute("SELECT to_regclass('planner.expectation')").fetchone() == (None,)
    assert check(url).current == "0001_spine"
    assert migrate(url).before == "0001_spine"
    assert check(url).up_to_date


def test_a_failed_migration_leaves_no_tables(empty_database_url: str) -> None:
    _run(empty_database_url, "CREATE SCHEMA planner", "CREATE TABLE planner.plan (taken int)")
    _run(empty_database_url, "GRANT ALL ON SCHEMA planner TO planner_owner")
    with pytest.raises(StoreError, match="plan"):
        migrate(empty_database_url)
    with psycopg.connect(empty_database_url) as conn:
        tables = conn.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'planner'::regnamespace"
        ).fetchall()
    assert ("scope",) not in tables
    assert ("ledger",) not in tables


def test_a_database_that_cannot_be_reached_is_named_so(server_url: str) -> None:
    url = make_url(server_url).set(database="no_such_database").render_as_string(hide_password=False)
    with pytest.raises(StoreUnavailable, match="no_such_database"):
        migrate(url)


def test_the_extension_may_live_in_a_schema_of_its_own(
    empty_database_url: str, template_url: str, schema_of: SchemaOf
) -> None:
    _run(empty_database_url, "CREATE SCHEMA ext", "CREATE EXTENSION vector SCHEMA ext")
    migrate(empty_database_url)
    with psycopg.connect(empty_database_url) as conn:
        conn.execute("SET ROLE planner_reader")
        assert conn.execute("SELECT vec::text FROM planner.embedding").fetchall() == []
        assert conn.execute("SELECT '[1]'::ext.vector::text").fetchone() == ("[1]",)


def test_a_login_that_may_create_roles_migrates_a_database_that_it_owns(
    roleless_database: NewDatabase, template_url: str, schema_of: SchemaOf
) -> None:
    url = roleless_database()
    _run(url, "CREATE EXTENSION vector")
    login_url = _login(url, "login_creator", attributes="CREATEROLE")
    migrate(login_url)
    assert migrate(login_url).applied == ()
    assert schema_of(url) == schema_of(template_url)
    with psycopg.connect(login_url) as conn:
        for role in ROLES:
            conn.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        conn.execute("RESET ROLE")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("SELECT FROM planner.scope")


@pytest.mark.parametrize("roles", [True, False], ids=["roles", "no-roles"])
def test_where_roles_cannot_be_created_the_error_holds_the_statements_that_make_it_work(
    *, roleless_database: NewDatabase, template_url: str, schema_of: SchemaOf, roles: bool
) -> None:
    url = roleless_database()
    _run(url, "CREATE EXTENSION vector")
    login_url = _login(url, "login_plain")
    before = schema_of(url)
    with pytest.raises(MissingRoles) as refused:
        migrate(login_url, roles=roles)
    assert schema_of(url) == before
    statements = refused.value.detail["statements"]
    assert isinstance(statements, list)
    assert all(statement in str(refused.value) for statement in statements)
    _run(url, *statements)
    migrate(login_url, roles=roles)
    assert schema_of(url) == schema_of(template_url)


def test_without_roles_none_is_created(roleless_database: NewDatabase) -> None:
    url = roleless_database()
    with pytest.raises(MissingRoles, match="CREATE ROLE"):
        migrate(url, roles=False)
    with psycopg.connect(url) as conn:
        assert conn.execute("SELECT FROM pg_roles WHERE rolname LIKE 'planner\\_%'").fetchall() == []


def test_a_login_that_is_no_member_is_told_the_grant(
    database_url: str, roleless_database: NewDatabase
) -> None:
    url = roleless_database()
    migrate(url)
    login_url = _login(url, "login_stranger", owner=False)
    with pytest.raises(MissingRoles, match=r'GRANT .* TO "login_stranger"'):
        check(login_url)
    with pytest.raises(MissingRoles, match=r'GRANT .* TO "login_stranger"'):
        migrate(login_url)


def test_without_the_extension_a_login_that_may_not_create_it_is_told_who_may(
    roleless_database: NewDatabase,
) -> None:
    login_url = _login(roleless_database(), "login_creator", attributes="CREATEROLE")
    with pytest.raises(UnsupportedServer, match=r"superuser .*CREATE EXTENSION vector"):
        migrate(login_url)


def test_a_login_that_may_not_create_a_schema_is_told_the_statement_that_works(
    roleless_database: NewDatabase,
) -> None:
    url = roleless_database()
    _run(url, "CREATE EXTENSION vector")
    login_url = _login(url, "login_creator", attributes="CREATEROLE", owner=False)
    with pytest.raises(StoreError, match="CREATE SCHEMA planner AUTHORIZATION planner_owner"):
        migrate(login_url)
    _run(url, "CREATE SCHEMA planner AUTHORIZATION planner_owner")
    assert migrate(login_url).after == head_revision()
