"""Migrations at once, and planners that come meanwhile: it is done once, nobody works on half a schema."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from planner.errors import MigrationBusy, SchemaBehind
from planner.store import upgrade
from planner.store.requirements import Facts
from planner.store.resources import revisions
from planner.store.upgrade import check, migrate
from tests.faults.conftest import Survived
from tests.faults.crew import Crew, await_waiting, connect, deadlocks, gate, lost
from tests.faults.invariants import check_invariants, rows_left, session
from tests.faults.work import live, migrate_at_gate, migrate_often

EMPTY = "empty"


@pytest.fixture
def at(empty_database_url: str) -> Callable[[str], str]:
    """Give a function that brings an empty database to a revision, without objects, and returns its URL."""

    def bring(revision: str) -> str:
        if revision != EMPTY:
            with upgrade._connection(empty_database_url) as conn:
                upgrade._lay_ground(conn, Facts.of(conn), roles=True)
                upgrade._run_migrations(conn, revision)
        return empty_database_url

    return bring


def test_processes_migrate_an_empty_database_at_once_and_one_does_it(
    crew: Crew, empty_database_url: str, survived: Survived
) -> None:
    with gate(empty_database_url) as conn:
        calls = [crew.submit(migrate_at_gate, empty_database_url, None) for _ in range(4)]
        await_waiting(conn, 4, calls)
    assert sorted(call.result() for call in calls) == [*[()] * 3, revisions()]
    assert check(empty_database_url).up_to_date
    with connect(empty_database_url) as planner:
        planner.ingest_text("s", "doc.md", "The first at 5.")
    check_invariants(empty_database_url, "s")
    survived("four processes at once", "migrate", lost([1], [rows_left(empty_database_url, "s")["ledger"]]))


@pytest.mark.parametrize(
    ("revision", "stage"),
    [
        (EMPTY, "_run_migrations"),
        (EMPTY, "_rebuild_objects"),
        *[(revision, "_run_migrations") for revision in revisions()[:-1]],
    ],
)
def test_while_a_migration_runs_planners_and_other_migrations_are_refused_by_name(
    crew: Crew, at: Callable[[str], str], survived: Survived, revision: str, stage: str
) -> None:
    url = at(revision)
    with gate(url) as conn:
        migration = crew.submit(migrate_at_gate, url, stage)
        await_waiting(conn, 1, [migration])
        with pytest.raises(SchemaBehind, match="planner migrate"):
            connect(url)
        with pytest.raises(MigrationBusy, match="another migration"):
            migrate(url, patience=0)
        assert not check(url).up_to_date
    assert migration.result() == (
        revisions() if revision == EMPTY else revisions()[revisions().index(revision) + 1 :]
    )
    assert migrate(url, patience=0).applied == ()
    with connect(url) as planner:
        planner.ingest_text("s", "doc.md", "The first at 5.")
        planner.plan("s", "at 5")
    check_invariants(url, "s")
    left = rows_left(url, "s")
    missing = lost([1, 1], [left["source"], left["plan"]])
    survived("a migration is running", f"connect, migrate: at {revision}, before {stage[1:]}", missing)


def test_the_objects_are_built_anew_while_processes_write_and_plan(
    crew: Crew, database_url: str, survived: Survived
) -> None:
    names = [f"p{i}" for i in range(4)]
    *done, outcomes = crew.run(
        database_url, [*((live, ["s"], name, 3) for name in names), (migrate_often, 4)]
    )
    assert {outcome for outcome in outcomes if outcome != "done"} == set()
    wrote = [version for mine in done for version in mine["s"].versions]
    with session(database_url) as conn:
        found = conn.execute("SELECT source_id, version_tx FROM planner.source_version").fetchall()
    check_invariants(database_url, "s")
    assert check(database_url).up_to_date
    assert deadlocks(database_url) == 0
    survived("the objects are built anew", "ingest, append, plan", lost(wrote, found))
