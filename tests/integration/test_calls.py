"""A call's deadline and cancellation reach the statement that runs for it, and leave all else as it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from psycopg import sql
from psycopg_pool import ConnectionPool

from planner import Planner, Settings
from planner.errors import CallCancelled, DeadlineExceeded, StoreBusy, StoreUnavailable
from planner.ingest import scope_id
from planner.store import retry
from planner.store.call import Call, calling
from planner.store.connect import Store, run
from planner.store.local import set_local
from planner.store.retry import attempts
from tests.integration.graph import Connection, circle_embedder, fan, rows_of
from tests.integration.repeated import READS, WRITES, doing, fill, waiting_pid

S = scope_id("s")
ONE_TRANSACTION = ("ingest", "append", "erase", "withdraw", "prune versions", "empty a scope")


@contextmanager
def single(url: str, **settings: int) -> Iterator[Planner]:
    """Open a planner that has one connection: what the next call gets is what the one before gave back."""
    chosen = Settings(pool_size=1, **settings)
    with Planner.connect(url, settings=chosen, embedder=circle_embedder()) as planner:
        yield planner


@pytest.fixture
def lone(database_url: str) -> Iterator[Planner]:
    """Give a planner with one connection, whose scope `s` holds a small graph."""
    with single(database_url) as planner:
        fan(0, 30).into(planner, "s")
        yield planner


@contextmanager
def locked(conn: Connection, table: str) -> Iterator[None]:
    """Keep everybody else from a table."""
    with conn.transaction():
        conn.execute(f"LOCK TABLE planner.{table} IN ACCESS EXCLUSIVE MODE".encode())
        yield


def answered(call: Call, work: Callable[[], Any]) -> Callable[[], Any]:
    """Return work that is done for a call."""

    def answer() -> Any:
        with calling(call):
            return work()

    return answer


def backend(planner: Planner) -> int:
    with planner.engine.store.scoped(S, "reader") as conn:
        return conn.info.backend_pid


def timeout_of(conn: Connection) -> str:
    """Return the timeout of a transaction, asked beside `run`, which might change it."""
    ((shown,),) = conn.execute("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'").fetchall()
    return str(shown)


def plans(conn: Connection) -> list[tuple[Any, ...]]:
    return conn.execute("SELECT outcome, error_code FROM planner.plan").fetchall()


def cancelled(call: Call, work: Callable[[], Any], observer: Connection) -> None:
    """Do work that will wait for a lock, and cancel it there."""
    with doing(answered(call, work)) as answer:
        waiting_pid(observer, answer)
        call.cancel()
    with pytest.raises(CallCancelled):
        answer.result()


@pytest.mark.parametrize("name", READS)
def test_a_read_that_waits_is_cancelled_and_its_connection_serves_the_next(
    lone: Planner, other: Connection, observer: Connection, name: str
) -> None:
    asked = [str(lone.plan("s", f"at {angle}").ref) for angle in (0, 30)]
    table, read = READS[name]
    before = backend(lone)
    undisturbed = read(lone, *asked)
    with locked(other, table):
        cancelled(Call(), lambda: read(lone, *asked), observer)
    assert read(lone, *asked) == undisturbed
    assert backend(lone) == before


@pytest.mark.parametrize("name", ONE_TRANSACTION)
def test_a_write_that_waits_is_cancelled_and_leaves_nothing(
    lone: Planner, other: Connection, observer: Connection, name: str
) -> None:
    for scope in ("one", "twin"):
        fill(lone, scope)
    write = WRITES[name]
    write.work(lone, "twin")
    before = rows_of(other, "one")
    with locked(other, write.table):
        cancelled(Call(), lambda: write.work(lone, "one"), observer)
    assert rows_of(other, "one") == before
    write.work(lone, "one")
    assert rows_of(other, "one") == rows_of(other, "twin")


def test_a_plan_that_is_cancelled_is_traced(lone: Planner, other: Connection, observer: Connection) -> None:
    with locked(other, "node"):
        cancelled(Call(), lambda: lone.plan("s", "at 0"), observer)
        assert plans(observer) == [("failed", "call.cancelled")]


def test_a_plan_that_runs_into_its_deadline_says_what_it_was_allowed_and_is_traced(
    lone: Planner, other: Connection, observer: Connection
) -> None:
    before = backend(lone)
    with locked(other, "node"), calling(Call(200)), pytest.raises(DeadlineExceeded, match="200 ms") as caught:
        lone.plan("s", "at 0")
    assert caught.value.detail["deadline_ms"] == 200
    assert plans(observer) == [("failed", "call.deadline")]
    assert caught.value.detail["plan"] is not None
    assert len(lone.plan("s", "at 0").spans) == 2
    assert backend(lone) == before


def test_behind_its_deadline_a_call_sends_nothing(lone: Planner, other: Connection) -> None:
    call = Call(1)
    call.pause(1.0)
    with locked(other, "scope"), calling(call):  # what is sent would wait for the lock
        with pytest.raises(DeadlineExceeded):
            lone.sources("s")
        with pytest.raises(DeadlineExceeded):
            lone.scopes()
        with pytest.raises(DeadlineExceeded), lone.engine.store.upkeep():
            raise AssertionError


def test_what_was_cancelled_between_two_statements_sends_no_other_and_leaves_nothing(lone: Planner) -> None:
    call = Call()
    with calling(call), pytest.raises(CallCancelled), lone.engine.store.scoped(S, "writer") as conn:
        run(conn, "mark_lexical", {"scope_id": S, "lexical": 7})
        call.cancel()
        run(conn, "hold_scope", {"scope_id": S})
    with lone.engine.store.scoped(S, "reader") as conn:
        assert conn.execute("SELECT lexical FROM planner.scope").fetchone() != (7,)


def test_upkeep_that_is_cancelled_gives_back_a_connection_without_its_role_and_lock(
    lone: Planner, other: Connection, observer: Connection
) -> None:
    with locked(other, "embedding"):
        cancelled(Call(), lambda: lone.build_index("s"), observer)
    with lone.engine.store.upkeep() as conn:
        pid = conn.info.backend_pid
    with lone.engine.store.pool.connection() as conn:
        assert conn.info.backend_pid == pid
        assert conn.execute("SELECT current_user = session_user").fetchone() == (True,)
    assert lone.build_index("s").built


@pytest.mark.parametrize(
    ("operators", "calls", "least", "most"),
    [(30_000, 5_000, 1, 5_000), (100, 5_000, 100, 100), (30_000, None, 30_000, 30_000)],
)
def test_a_transaction_has_the_lesser_of_the_operators_timeout_and_what_is_left(
    database_url: str, operators: int, calls: int | None, least: int, most: int
) -> None:
    with single(database_url, statement_timeout_ms=operators) as planner, calling(Call(calls)):
        with planner.engine.store.scoped(S, "reader") as conn:
            assert least <= int(timeout_of(conn)) <= most
        with planner.engine.store.maintenance({"statement_timeout": 0}) as conn:
            assert (timeout_of(conn) == "0") == (calls is None)


def test_each_statement_has_what_is_left_not_what_the_first_had(lone: Planner) -> None:
    call = Call(2_000)
    with calling(call), lone.engine.store.scoped(S, "writer") as conn:
        first = int(timeout_of(conn))
        call.pause(0.3)
        run(conn, "hold_scope", {"scope_id": S})
        assert int(timeout_of(conn)) <= first - 200
        set_local(conn, {"statement_timeout": 0})
        assert 0 < int(timeout_of(conn)) <= first - 200
    with lone.engine.store.scoped(S, "reader") as conn:
        run(conn, "scope_state", {"scope_id": S, "as_of": None})
        assert timeout_of(conn) == "30000"


def test_no_cancellation_meets_the_next_user_of_the_connection(lone: Planner) -> None:
    work = sql.SQL("SELECT pg_sleep({})").format(sql.Literal(0.002))

    def answer(number: int) -> bool:
        """Say whether a call was answered; every other one is cancelled, sooner or later in its work."""
        call = Call()
        with ThreadPoolExecutor(1) as canceller:
            if number % 2:
                canceller.submit(lambda: (time.sleep(number % 13 / 600), call.cancel()))
            try:
                with calling(call), lone.engine.store.scoped(S, "reader") as conn:
                    run(conn, work)
                return True
            except CallCancelled:
                return False

    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(answer, range(400)))
    assert all(answers[::2])
    assert not all(answers[1::2])


def test_a_full_pool_is_busy_to_a_call_and_others_wait(database_url: str) -> None:
    with single(database_url, pool_wait_ms=1) as planner:
        fan(0).into(planner, "s")
        pool = planner.engine.store.pool
        with planner.engine.store.scoped(S, "reader"):
            for call in (Call(), Call(60_000)):
                with calling(call), pytest.raises(StoreBusy) as caught:
                    planner.sources("s")
                assert caught.value.detail["retry_after"] == 1
            patient = ThreadPoolExecutor(1)
            waiting = patient.submit(planner.sources, "s")
            while not pool.get_stats()["requests_waiting"]:
                assert not waiting.done()
            time.sleep(0.1)  # a hundred times what a call would wait
        with patient:
            assert waiting.result().sources


def test_a_pool_that_the_server_gives_no_connection_is_not_busy() -> None:
    with ConnectionPool[Connection]("host=/nowhere", min_size=0, max_size=1, open=True) as pool:
        store = Store(pool, pool_wait_ms=100)
        with calling(Call()), pytest.raises(StoreUnavailable):
            _ = store.server


@pytest.mark.parametrize(
    ("allowed", "end", "raised"),
    [
        (60_000, lambda call: call.cancel(), CallCancelled),
        (300, lambda call: call.pause(60.0), DeadlineExceeded),
    ],
)
def test_attempts_stop_where_the_call_has_ended(
    lone: Planner,
    other: Connection,
    caplog: pytest.LogCaptureFixture,
    allowed: int,
    end: Callable[[Call], None],
    raised: type[Exception],
) -> None:
    call, store = Call(allowed), lone.engine.store

    def work() -> None:
        """Lose the backend of the transaction, and have the call end before the next attempt."""
        with store.scoped(S, "reader") as conn:
            (own,) = conn.execute("SELECT pg_backend_pid()").fetchone() or (None,)  # behind a pooler too
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (own,))
            try:
                run(conn, "hold_scope", {"scope_id": S})
            finally:
                end(call)

    caplog.set_level("INFO", retry.__name__)
    with calling(call), pytest.raises(raised):
        attempts(store)(work)
    assert [r.getMessage()[:12] for r in caplog.records if r.name == retry.__name__] == ["attempt 1 of"]
    assert lone.sources("s").sources
