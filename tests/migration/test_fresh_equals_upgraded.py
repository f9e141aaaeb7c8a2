"""Whatever way a database came to this version, its schema is the same text; the metadata says it too."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext

from planner.embedded.binaries import environment, program
from planner.store import objects
from planner.store.resources import head_revision, revisions
from planner.store.schema import metadata
from planner.store.upgrade import check, migrate, script

SchemaOf = Callable[[str], str]
NewDatabase = Callable[[], str]
TABLES = sorted(table.name for table in metadata.tables.values())


@pytest.fixture
def fresh(template_url: str, schema_of: SchemaOf) -> str:
    return schema_of(template_url)


def _tables(url: str) -> list[str]:
    query = "SELECT relname FROM pg_class WHERE relnamespace = 'planner'::regnamespace AND relkind = 'r'"
    with psycopg.connect(url) as conn:
        return sorted({name for (name,) in conn.execute(query)} & set(TABLES))


def _counts(url: str, tables: Sequence[str] = TABLES) -> dict[str, int]:
    with psycopg.connect(url) as conn:
        return {
            name: (conn.execute(f"SELECT count(*) FROM planner.{name}").fetchone() or (0,))[0]
            for name in tables
        }


def test_migrating_twice_with_rows_in_every_table_changes_neither_schema_nor_rows(
    database_url: str, fresh: str, schema_of: SchemaOf, fill: Callable[[str], None]
) -> None:
    fill(database_url)
    before = _counts(database_url)
    assert all(before.values()), f"no rows in {[name for name, count in before.items() if not count]}"
    report = migrate(database_url)
    assert (report.before, report.after, report.applied) == (head_revision(), head_revision(), ())
    assert schema_of(database_url) == fresh
    assert _counts(database_url) == before


@pytest.mark.parametrize("released", revisions()[:-1])
def test_an_upgrade_from_a_released_revision_with_rows_gives_the_fresh_schema_and_keeps_the_rows(
    *,
    released_database: Callable[[str], str],
    fresh: str,
    schema_of: SchemaOf,
    fill: Callable[..., None],
    released: str,
) -> None:
    url = released_database(released)
    fill(url, released)
    old = _tables(url)
    before = _counts(url, old)
    assert all(before.values()), f"no rows in {[name for name, count in before.items() if not count]}"
    report = migrate(url)
    later = revisions()[revisions().index(released) + 1 :]
    assert (report.before, report.after, report.applied) == (released, head_revision(), later)
    assert schema_of(url) == fresh
    assert _counts(url, old) == before
    assert check(url).up_to_date


def test_objects_of_another_version_and_damage_are_gone_after_a_migration(
    database_url: str, fresh: str, schema_of: SchemaOf
) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute("SET ROLE planner_owner")
        conn.execute("CREATE VIEW planner.plan_of_yore AS SELECT 1 AS one")
        conn.execute("CREATE FUNCTION planner.old_slice(text) RETURNS text LANGUAGE sql AS 'SELECT $1'")
        conn.execute("CREATE POLICY everyone ON planner.node USING (true)")
        conn.execute("DROP POLICY tenant ON planner.edge")
        conn.execute("ALTER TABLE planner.plan NO FORCE ROW LEVEL SECURITY")
        conn.execute("ALTER TABLE planner.span DISABLE ROW LEVEL SECURITY")
        conn.execute("GRANT DELETE ON planner.ledger TO planner_reader")
        conn.execute("GRANT UPDATE (body) ON planner.source_version TO planner_reader")
        conn.execute("GRANT EXECUTE ON FUNCTION planner.place(text) TO PUBLIC")
        conn.execute("DROP VIEW planner.source_usage")
        conn.execute("COMMENT ON SCHEMA planner IS 'mine'")
    assert check(database_url).drifted
    assert schema_of(database_url) != fresh
    migrate(database_url)
    assert schema_of(database_url) == fresh
    assert check(database_url).up_to_date


def test_a_view_of_a_user_over_our_views_survives_a_migration(database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute("CREATE VIEW public.my_plans AS SELECT plan_id, question FROM planner.plan_overview")
    migrate(database_url)
    with psycopg.connect(database_url) as conn:
        assert conn.execute("SELECT count(*) FROM public.my_plans").fetchone() == (0,)


@pytest.mark.parametrize("roles", [True, False], ids=["roles", "no-roles"])
def test_the_printed_script_gives_the_schema_that_migrate_gives(
    *,
    template_url: str,
    another_database: NewDatabase,
    fresh: str,
    schema_of: SchemaOf,
    tmp_path: Path,
    roles: bool,
) -> None:
    url = another_database()
    printed = tmp_path / "script.sql"
    printed.write_text(script(roles=roles), encoding="utf-8")
    psql = [str(program("psql")), "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", str(printed)]
    subprocess.run(psql, capture_output=True, check=True, env=environment())
    assert schema_of(url) == fresh
    assert check(url).up_to_date


def test_the_script_names_the_roles_statements_only_where_it_does_not_run_them() -> None:
    with_roles, without = script(), script(roles=False)
    statements = objects.dba_statements("<login>")
    assert all(f"--   {line}\n" in without for line in statements)
    assert not any(line in with_roles for line in statements)
    assert "CREATE ROLE %I" in with_roles
    assert "CREATE ROLE %I" not in without


def test_the_metadata_makes_the_schema_that_the_migrations_make(
    template_url: str, another_database: NewDatabase, fresh: str, schema_of: SchemaOf
) -> None:
    url = another_database()
    engine = sa.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=sa.NullPool
    )
    with engine.begin() as connection:
        raw = connection.connection.driver_connection
        assert isinstance(raw, psycopg.Connection)
        for path in objects.ground_files():
            raw.execute(objects.statements(path))
        metadata.create_all(connection, checkfirst=False)
        context = MigrationContext.configure(connection, opts={"version_table_schema": "planner"})
        context._ensure_version_table()
        for path in objects.object_files():
            raw.execute(objects.statements(path))
        raw.execute(objects.seal(objects.objects_hash()))
    assert schema_of(url) == fresh
