"""Readers wait for no writer: a plan is made and traced while one has done everything but commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planner import Planner
from tests.faults.conftest import Survived
from tests.faults.crew import WORDS, await_waiting, connect, held, later, lost
from tests.faults.invariants import check_invariants, rows_left, session

Writer = Callable[[Planner, Path], Any]

TURNS = [{"content": f"Turn {i} at {i}.", "id": f"m{i}"} for i in range(3)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder of two files, in a folder of its own."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("stays.md", "goes.md"):
        (folder / name).write_text(f"The file {name} at 50.", encoding="utf-8")
    return folder


@pytest.fixture
def planner(database_url: str, folder: Path) -> Iterator[Planner]:
    """Give a planner on a database of its own, whose scope `s` has something for every writer to change.

    A statement of it that waits for a lock fails after five seconds.
    """
    with connect(database_url, statement_timeout_ms=5_000) as planner:
        planner.ingest_text("s", "doc.md", "The first at 10.\n\nThe second at 20.")
        planner.ingest_text("s", "doc.md", "The first at 10.\n\nThe second, changed, at 30.")
        planner.ingest_text("s", "old.md", "It was so at 70.")
        planner.ingest_text("s", "old.md", "It is not so at 80.")
        planner.append("s", "talk.json", TURNS[:2])
        planner.ingest("s", folder)
        planner.plan("s", "at 0", counter=WORDS)
        yield planner


def ingest(planner: Planner, folder: Path) -> Any:
    return planner.ingest_text(
        "s", "doc.md", "The first at 10.\n\nThe second, again, at 40.\n\nA third at 60."
    )


def ingest_new(planner: Planner, folder: Path) -> Any:
    return planner.ingest_text("s", "new.md", "It is new at 15.")


def append(planner: Planner, folder: Path) -> Any:
    return planner.append("s", "talk.json", TURNS[2:])


def sync(planner: Planner, folder: Path) -> Any:
    (folder / "goes.md").unlink()
    return planner.ingest("s", folder, sync=True)


def erase(planner: Planner, folder: Path) -> Any:
    return planner.erase("s", "doc.md")


def prune_versions(planner: Planner, folder: Path) -> Any:
    return planner.prune_versions("s", "old.md", keep_versions=1)


def reembed(planner: Planner, folder: Path) -> Any:
    return planner.reembed("s", later())


def prune_trace(planner: Planner, folder: Path) -> Any:
    return planner.prune_trace(datetime.now(UTC), "s")


def delete_scope(planner: Planner, folder: Path) -> Any:
    return planner.delete_scope("s")


HELD: list[tuple[Writer, str, str]] = [
    (ingest, "ledger", "INSERT"),
    (ingest_new, "ledger", "INSERT"),
    (append, "ledger", "INSERT"),
    (sync, "ledger", "INSERT"),
    (erase, "ledger", "INSERT"),
    (prune_versions, "ledger", "INSERT"),
    (reembed, "ledger", "INSERT"),
    (prune_trace, "plan", "DELETE"),
    (delete_scope, "node", "DELETE"),
]


@pytest.mark.parametrize(("writer", "table", "event"), HELD, ids=[w.__name__ for w, *_ in HELD])
def test_a_plan_is_made_and_traced_while_a_writer_is_held_where_it_commits(
    planner: Planner,
    database_url: str,
    folder: Path,
    survived: Survived,
    writer: Writer,
    table: str,
    event: str,
) -> None:
    before = planner.plan("s", "at 12")
    with (
        held(database_url, "s", table, event, lambda: writer(planner, folder)),
        connect(database_url, statement_timeout_ms=5_000) as reader,
    ):
        plans = [reader.plan("s", "at 12", counter=counter) for counter in (None, WORDS)]
        assert plans[0].plan_hash == before.plan_hash
        assert [reader.load(plan.ref).plan_hash for plan in plans] == [p.plan_hash for p in plans]
        assert reader.sources("s").sources
        assert reader.ingest_text("other", "doc.md", "Another scope at 5.").sources[0].version_tx == 1
    check_invariants(database_url, "s")
    if writer is not delete_scope:
        traced = [plan.plan_id for plan in plans]
        with session(database_url) as conn:
            found = conn.execute("SELECT plan_id::text FROM planner.plan WHERE plan_id = ANY (%s)", (traced,))
            missing = lost(traced, [row[0] for row in found])
    else:
        missing = sum(rows_left(database_url, "s").values())
    survived("a writer held open", f"{writer.__name__} while plans are made", missing)


def test_a_second_writer_of_the_scope_waits_for_the_first(
    planner: Planner, database_url: str, folder: Path
) -> None:
    with ThreadPoolExecutor(1) as thread, session(database_url) as conn:
        with held(database_url, "s", "ledger", "INSERT", lambda: ingest(planner, folder)):
            second = thread.submit(append, planner, folder)
            await_waiting(conn, 1, [second], lock="transactionid")
        assert second.result().sources[0].version_tx > 1
    check_invariants(database_url, "s")


def test_a_writer_waits_for_no_plan_that_is_being_traced(
    planner: Planner, database_url: str, folder: Path
) -> None:
    with (
        held(database_url, "s", "plan", "INSERT", lambda: planner.plan("s", "at 12", counter=WORDS)),
        connect(database_url, statement_timeout_ms=5_000) as writer,
    ):
        for work in (ingest, append, sync, erase, prune_versions, reembed):
            work(writer, folder)
    check_invariants(database_url, "s")
