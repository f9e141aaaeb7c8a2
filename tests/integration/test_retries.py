"""What the database fails in passing is tried again, and only that: real faults on a real server."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from planner import Planner, Settings
from planner.embedded import EmbeddedServer
from planner.errors import StoreError, StoreTimeout, StoreUnavailable
from planner.ingest import scope_id
from planner.pipeline import erase
from planner.store import retry
from planner.store.retry import ATTEMPTS, attempts, is_passing
from planner.store.upgrade import migrate
from tests.integration.graph import Connection, circle_embedder, fan, rows_of
from tests.integration.repeated import (
    APPLICATION,
    READS,
    WRITES,
    append,
    doing,
    fill,
    through_a_kill,
    waiting_pid,
)
from tests.integration.test_ingest_writers import assert_chained


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return a function that gives what was logged of the attempts that failed."""
    caplog.set_level("INFO", retry.__name__)
    return lambda: [record.getMessage() for record in caplog.records if record.name == retry.__name__]


def plans(conn: Connection) -> list[tuple[Any, ...]]:
    return conn.execute("SELECT outcome, error_code FROM planner.plan").fetchall()


def ingest(planner: Planner) -> Any:
    return planner.ingest_text("s", "doc.md", "A text at 10.")


@pytest.mark.parametrize("name", READS)
def test_a_read_whose_backend_is_terminated_gives_what_it_gives_otherwise(
    victim: Planner, other: Connection, observer: Connection, said: Callable[[], list[str]], name: str
) -> None:
    asked = [str(victim.plan("s", f"at {angle}").ref) for angle in (0, 30)]
    table, read = READS[name]
    undisturbed = read(victim, *asked)
    lock = f"{table} IN ACCESS EXCLUSIVE"
    assert through_a_kill(other, observer, lock, lambda: read(victim, *asked)) == undisturbed
    assert ["attempt 1 of" in message for message in said()] == [True]


@pytest.mark.parametrize("name", WRITES)
def test_a_write_whose_backend_is_terminated_is_made_once(
    victim: Planner, other: Connection, observer: Connection, said: Callable[[], list[str]], name: str
) -> None:
    for scope in ("one", "twin"):
        fill(victim, scope)
    write = WRITES[name]
    write.work(victim, "twin")
    lock = f"{write.table} IN SHARE"
    assert through_a_kill(other, observer, lock, lambda: write.work(victim, "one")) is not None
    assert ["attempt 1 of" in message for message in said()] == [True]
    assert rows_of(other, "one") == rows_of(other, "twin")
    assert_chained(other, "one")


def test_a_turn_without_an_id_is_appended_once_where_the_attempt_before_left_nothing(
    victim: Planner, other: Connection, observer: Connection
) -> None:
    through_a_kill(other, observer, "edge IN SHARE", lambda: append(victim, "s"))
    assert len(victim.source("s", "talk.json").spans) == 1
    assert assert_chained(other, "s") == 2


@pytest.mark.parametrize("work", [lambda p: p.build_index("s"), lambda p: erase.scrub(p.engine)])
def test_upkeep_whose_backend_is_terminated_is_done_again(
    victim: Planner, other: Connection, observer: Connection, work: Callable[[Planner], Any]
) -> None:
    done = through_a_kill(other, observer, "embedding IN SHARE", lambda: work(victim))
    assert done in (0, victim.build_index("s")) or done.built
    indexes = other.execute(
        "SELECT i.indisvalid, a.attstattarget FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relname LIKE 'embedding_hnsw%'"
    ).fetchall()
    assert indexes == [(True, 0)]


def test_a_plan_whose_backend_is_terminated_while_it_reads_is_made_and_traced_once(
    victim: Planner, other: Connection, observer: Connection
) -> None:
    made = through_a_kill(other, observer, "node IN ACCESS EXCLUSIVE", lambda: victim.plan("s", "at 0"))
    assert len(made.spans) == 2
    assert plans(other) == [("planned", None)]


def test_the_loser_of_a_deadlock_tries_again(
    victim: Planner, other: Connection, observer: Connection, said: Callable[[], list[str]]
) -> None:
    other.execute("SET deadlock_timeout = '60s'")  # the planner's backend looks for it first, and loses
    with other.transaction():
        other.execute("LOCK TABLE planner.node IN SHARE MODE")
        with doing(lambda: ingest(victim)) as call:
            waiting_pid(observer, call)
            other.execute("UPDATE planner.scope SET created_at = created_at WHERE name = 's'")
            other.execute("COMMIT")
            other.execute("BEGIN")
    assert call.result().sources[0].status == "new"
    assert assert_chained(other, "s") == 2
    assert ["deadlock detected" in message for message in said()] == [True]


def test_a_writer_that_cannot_be_serialised_tries_again(
    victim: Planner, other: Connection, observer: Connection, said: Callable[[], list[str]]
) -> None:
    level = "ALTER DATABASE {} SET default_transaction_isolation = 'repeatable read'"
    other.execute(sql.SQL(level).format(sql.Identifier(other.info.dbname)))
    url = victim.engine.store.pool.conninfo
    with Planner.connect(url, settings=Settings(), embedder=circle_embedder()) as strict:
        with other.transaction():
            other.execute("UPDATE planner.scope SET created_at = created_at WHERE name = 's'")
            with doing(lambda: ingest(strict)) as call:
                waiting_pid(observer, call)
                other.execute("COMMIT")
                other.execute("BEGIN")
        assert call.result().sources[0].status == "new"
    assert assert_chained(other, "s") == 2
    assert ["could not serialize" in message for message in said()] == [True]


def test_a_statement_that_ran_into_its_timeout_is_not_tried_again(
    victim: Planner, other: Connection, said: Callable[[], list[str]]
) -> None:
    hasty = Planner.from_pool(
        victim.engine.store.pool, settings=Settings(statement_timeout_ms=200), embedder=circle_embedder()
    )
    with other.transaction():
        other.execute("LOCK TABLE planner.node IN ACCESS EXCLUSIVE MODE")
        for work in (lambda: ingest(hasty), lambda: hasty.plan("s", "at 0")):
            with pytest.raises(StoreTimeout):
                work()
    assert said() == []
    assert plans(other) == [("failed", "store.timeout")]


def test_attempts_are_bounded_and_the_last_error_is_raised_and_traced(
    victim: Planner, other: Connection, said: Callable[[], list[str]]
) -> None:
    class Fatal:
        name, revision, dimensions = "circle", "", 2

        def embed(self, texts: Any) -> Any:
            """Let the transaction that the question is embedded in lose its backend."""
            other.execute(
                f"SELECT pg_terminate_backend(pid) FROM ({APPLICATION} AND state = 'idle in transaction') p"
            )
            return circle_embedder().embed(texts)

    doomed = Planner.from_pool(victim.engine.store.pool, settings=Settings(), embedder=Fatal())
    with pytest.raises(StoreUnavailable) as caught:
        doomed.plan("s", "at 0")
    assert [m.split(" failed in passing")[0] for m in said()] == [
        f"attempt {i} of {ATTEMPTS}" for i in range(1, ATTEMPTS)
    ]
    assert plans(other) == [("failed", "store.unavailable")]
    assert caught.value.detail["plan"] is not None


def test_a_restarted_server_is_met_with_connections_that_it_has_forgotten(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "home", durable=False, idle_seconds=60)
    server.start()
    try:
        migrate(server.url)
        with Planner.connect(
            server.url, settings=Settings(pool_size=4), embedder=circle_embedder()
        ) as planner:
            fan(0, 30).into(planner, "s")
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda _: planner.plan("s", "at 0"), range(8)))
            server.stop()
            server.start()
            assert len(planner.plan("s", "at 0").spans) == 2
            server.stop()
            server.start()
            assert ingest(planner).sources[0].status == "new"
            with psycopg.connect(server.url, autocommit=True) as conn:
                assert assert_chained(conn, "s") == 2
                assert plans(conn) == [("planned", None)] * 9
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("statement", "passing"),
    [
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$", True),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$", True),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '57P01'; END $$", True),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '08006'; END $$", True),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '57014'; END $$", False),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53200'; END $$", False),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '23505'; END $$", False),
        ("SELECT 1/0", False),
        ("SELECT no_such_column", False),
    ],
)
def test_only_what_may_be_gone_the_next_time_is_passing(
    victim: Planner, statement: str, passing: bool
) -> None:
    with pytest.raises(StoreError) as caught, victim.engine.store.scoped(scope_id("s"), "reader") as conn:
        conn.execute(statement.encode())
    assert is_passing(caught.value) is passing


def test_what_is_no_failure_of_the_database_is_raised_at_once(victim: Planner) -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise KeyError("x")

    with pytest.raises(KeyError):
        attempts(victim.engine.store)(work)
    assert calls == [1]
