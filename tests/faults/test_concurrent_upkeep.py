"""Upkeep while others write and plan: moving to another model, pruning the trace, counting the same texts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg import Rollback

from planner import Planner
from planner.ingest import scope_id
from tests.faults.conftest import Survived
from tests.faults.crew import WORDS, Crew, await_waiting, connect, deadlocks, held, later, lost, parts
from tests.faults.invariants import check_invariants, check_vectors, rows_left, session
from tests.faults.work import TALK, delete, index, live, plan, prune_trace, reembed, scrub, write

NAMES = [f"p{i}" for i in range(8)]


@pytest.fixture
def planner(database_url: str) -> Iterator[Planner]:
    """Give a planner on a database of its own, whose scope `s` holds a document of twenty paragraphs."""
    with connect(database_url) as planner:
        planner.ingest_text("s", "doc.md", "\n\n".join(f"Paragraph {i} at {i}." for i in range(20)))
        yield planner


def test_a_scope_moves_to_another_model_while_processes_write(
    crew: Crew, planner: Planner, database_url: str, survived: Survived
) -> None:
    done = crew.run(database_url, [(reembed, "s"), *((write, "s", name, 4) for name in NAMES)])
    switch, writers = done[0], done[1:]
    wrote = [version for mine in writers for version in mine.versions]
    with session(database_url) as conn:
        found = conn.execute("SELECT source_id, version_tx FROM planner.source_version").fetchall()
        actions = conn.execute("SELECT tx FROM planner.ledger WHERE action = 'reembed'").fetchall()
        said = conn.execute("SELECT message_id FROM planner.span WHERE source_id = %s", (TALK,)).fetchall()
    assert actions == [(switch,)]
    missing = lost([("doc.md", 1), *wrote], found)
    missing += lost([f"{name}-{i}" for name in NAMES for i in range(4)], [message for (message,) in said])
    check_invariants(database_url, "s")
    check_vectors(database_url, "s")
    assert Planner.from_pool(planner.engine.store.pool, **parts(embedder=later())).plan("s", "at 90").spans
    assert deadlocks(database_url) == 0
    survived("nine processes at once", "reembed, ingest, append", missing)


def test_the_trace_is_pruned_by_processes_while_others_plan(
    crew: Crew, planner: Planner, database_url: str, survived: Survived
) -> None:
    calls: list[tuple[Any, ...]] = [(plan, "s", 10)] * 6
    done = crew.run(database_url, [*calls, *[(prune_trace, "s", 10)] * 2, *[(prune_trace, None, 10)] * 2])
    made, pruned = (
        [ref for refs in done[:6] for ref in refs],
        [sum(counts) for counts in zip(*done[6:], strict=True)],
    )
    left = rows_left(database_url, "s")
    check_invariants(database_url, "s")
    assert left.get("plan_candidate", 0) + pruned[1] == 20 * len(made)
    assert left.get("plan_node", 0) + pruned[2] == 20 * len(made)
    assert deadlocks(database_url) == 0
    survived("ten processes at once", "plan, trace prune", abs(len(made) - left.get("plan", 0) - pruned[0]))


def test_what_somebody_prunes_is_passed_over_and_not_waited_for(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    plan(planner, "s", 3)
    now = datetime.now(UTC)
    with (
        held(database_url, "s", "plan", "DELETE", lambda: planner.prune_trace(now)) as first,
        connect(database_url, statement_timeout_ms=5_000) as other,
    ):
        second = other.prune_trace(now, "s")
    check_invariants(database_url, "s")
    survived("two at once", "trace prune", lost([3, 0], [first.result().plans, second.plans]))


def test_what_runs_outside_a_transaction_is_done_one_after_the_other(
    crew: Crew, planner: Planner, database_url: str, survived: Survived
) -> None:
    """CREATE INDEX CONCURRENTLY, DROP INDEX CONCURRENTLY and VACUUM FULL wait for each other's snapshots."""
    for scope in ("t", "u", "v"):
        planner.ingest_text(scope, "doc.md", "The first at 5.\n\nThe second at 15.")
    planner.build_index("v")
    calls = [(index, "s"), (index, "t"), (index, "s"), (scrub, "u", "doc.md"), (delete, "v", 1)]
    done = crew.run(database_url, [*calls, (live, ["s", "t"], "p0", 2)])
    assert done[:5] == ["done", "done", "done", "done", {"delete: done": 1}]
    with session(database_url) as conn:
        found = conn.execute(
            "SELECT indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid"
            " WHERE relname LIKE 'embedding_hnsw%'"
        ).fetchall()
    for scope in ("s", "t", "u"):
        check_invariants(database_url, scope)
    assert deadlocks(database_url) == 0
    survived(
        "six processes at once",
        "index, scrub, scope delete, live",
        lost([True, True], [valid for (valid,) in found]),
    )


def test_two_plans_that_count_the_same_texts_do_not_wait_for_each_other(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    """Each ranks the texts the other way round; one text's count is somebody else's at first."""
    counts = (
        "INSERT INTO planner.token_count"
        " SELECT scope_id, text_hash, %s, 1 FROM planner.span WHERE ordinal = 10"
    )
    with ThreadPoolExecutor(2) as threads, session(database_url) as conn, session(database_url) as other:
        with other.transaction():
            other.execute(counts, (WORDS,))
            questions = ("at 0", "at 19")
            calls = [threads.submit(planner.plan, "s", text, counter=WORDS, k=64) for text in questions]
            await_waiting(conn, 2, calls, lock="transactionid")
            raise Rollback
        ranked = [[span.text for span in call.result().spans] for call in calls]
    assert ranked[0][0] != ranked[1][0]
    check_invariants(database_url, "s")
    with session(database_url) as conn:
        found = conn.execute("SELECT tokens FROM planner.token_count WHERE scope_id = %s", (scope_id("s"),))
        missing = lost([4] * 20, [tokens for (tokens,) in found])
    planner.close()
    assert deadlocks(database_url) == 0
    survived("two plans at once", "count the same texts", missing)
