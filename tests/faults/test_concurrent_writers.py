"""Ten processes write and plan at once, in one scope and in many: nothing is lost, doubled or locked up."""

from __future__ import annotations

from typing import Any

from planner.ingest import scope_id
from tests.faults.conftest import Survived
from tests.faults.crew import CREW, Crew, deadlocks, lost
from tests.faults.invariants import check_invariants, check_vectors, session
from tests.faults.work import TALK, Done, ingest, live

NAMES = [f"p{i}" for i in range(CREW)]


def rows(url: str, scope: str, statement: str, *values: Any) -> list[Any]:
    """Return the rows of a statement whose first value is the scope; those of one column as values."""
    with session(url) as conn:
        found = conn.execute(statement.encode(), (scope_id(scope), *values)).fetchall()
    return [row[0] if len(row) == 1 else row for row in found]


def turns(url: str, scope: str, source_id: str) -> list[str]:
    """Return the texts of a conversation's turns in order."""
    return rows(
        url,
        scope,
        "SELECT convert_from(substring(v.body FROM p.span_start::int + 1"
        "   FOR (p.span_end - p.span_start)::int), 'UTF8')"
        " FROM planner.span p JOIN planner.source_version v USING (scope_id, source_id, version_tx)"
        " WHERE p.scope_id = %s AND p.source_id = %s ORDER BY p.version_tx, p.ordinal",
        source_id,
    )


def lost_in(url: str, scope: str, done: list[Done]) -> int:
    """Count what is missing or doubled of all that processes wrote in a scope, in each one's order."""
    wrote = [version for mine in done for version in mine.versions]
    found = rows(url, scope, "SELECT source_id, version_tx FROM planner.source_version WHERE scope_id = %s")
    said, plans = (
        turns(url, scope, TALK),
        rows(url, scope, "SELECT plan_id::text FROM planner.plan WHERE scope_id = %s"),
    )
    assert len(rows(url, scope, "SELECT tx FROM planner.ledger WHERE scope_id = %s")) == len(wrote)
    for name, mine in zip(NAMES, done, strict=True):
        assert [turn for turn in said if f" {name}," in turn] == mine.turns
        assert turns(url, scope, f"{name}.json") == mine.turns
        assert mine.versions == sorted(mine.versions, key=lambda version: version[1])
    missing = lost(wrote, found) + lost((t for mine in done for t in mine.turns), said)
    return missing + lost((plan for mine in done for plan in mine.plans), plans)


def check_scope(url: str, scope: str, done: list[Done]) -> int:
    missing = lost_in(url, scope, done)
    check_invariants(url, scope)
    check_vectors(url, scope)
    assert len(set.union(*(mine.first_hashes for mine in done))) == 1
    return missing


def test_ten_processes_write_and_plan_in_one_scope(crew: Crew, database_url: str, survived: Survived) -> None:
    done = crew.run(database_url, [(live, ["s"], name, 3) for name in NAMES])
    missing = check_scope(database_url, "s", [mine["s"] for mine in done])
    assert deadlocks(database_url) == 0
    survived("ten processes at once", "ingest, append, plan: one scope", missing)


def test_ten_processes_write_and_plan_in_many_scopes(
    crew: Crew, database_url: str, survived: Survived
) -> None:
    scopes = [f"s{i}" for i in range(3)]
    turned = [scopes[i % 3 :] + scopes[: i % 3] for i in range(CREW)]
    done = crew.run(database_url, [(live, mine, name, 1) for name, mine in zip(NAMES, turned, strict=True)])
    missing = sum(check_scope(database_url, scope, [mine[scope] for mine in done]) for scope in scopes)
    assert deadlocks(database_url) == 0
    survived("ten processes at once", "ingest, append, plan: three scopes", missing)


def test_a_file_that_ten_processes_ingest_at_once_has_one_version(
    crew: Crew, database_url: str, survived: Survived
) -> None:
    text = "# One\n\nThe same file at 10.\n\nAgain at 20.\n"
    done = crew.run(database_url, [(ingest, "s", "same.md", text)] * CREW)
    assert sorted(done) == [("new", 1), *[("unchanged", 1)] * (CREW - 1)]
    check_invariants(database_url, "s")
    found = rows(database_url, "s", "SELECT version_tx FROM planner.source_version WHERE scope_id = %s")
    survived("ten processes at once", "ingest: the same new file", lost([1], found))
