"""Processes that work at once, each with a planner of its own; and writers that are held where they commit.

Both wait in PostgreSQL, for an advisory lock that the test holds: nothing is timed, and whoever looks at
`pg_stat_activity` sees who waits.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import Any

from psycopg import sql

from planner import Planner, Settings
from planner.embedders import CallableEmbedder
from planner.ingest import scope_id
from planner.ports import Embedder
from tests.faults.invariants import session
from tests.integration.graph import Connection, circle, circle_embedder

CREW = 10

PRELOADED = ["pytest", "planner.client", "planner.embedders", "tests.faults.crew"]
"""What a process would import for itself, at the cost of a second: one does, and the others are its forks."""

WORDS = "words"

GATE = 8_675_309
"""The advisory lock behind which everybody waits."""

WAITING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = %s"""

HOLD = """
    CREATE OR REPLACE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = '60s' AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared(8675309);
        RETURN NULL;
    END $$"""

HELD = """
    CREATE CONSTRAINT TRIGGER hold AFTER {event} ON planner.{table} DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW WHEN ({row}.scope_id = {scope_id}) EXECUTE FUNCTION public.hold()"""

Work = Callable[..., Any]


class WordCounter:
    """A counter that reads texts, so that its counts are cached."""

    name, bound = WORDS, "exact"

    def count(self, text: str) -> int:
        return len(text.split())


def later() -> CallableEmbedder:
    """Return another model than the circle's."""
    return CallableEmbedder("later", 2, lambda texts: circle(texts)[:, ::-1])


def parts(*, embedder: Embedder | None = None, **settings: Any) -> dict[str, Any]:
    """Return what a planner is opened with: the circle's embedder, the counter of words, a small pool."""
    chosen = Settings(**{"pool_size": 2, "max_frac_per_source": 1.0, **settings})
    return {
        "settings": chosen,
        "embedder": embedder or circle_embedder(),
        "counters": {WORDS: WordCounter()},
    }


def connect(url: str, **settings: Any) -> Planner:
    """Open a planner with these parts."""
    return Planner.connect(url, **parts(**settings))


class Crew:
    """A pool of processes that live as long as the session."""

    def __init__(self) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._pool = ProcessPoolExecutor(CREW, mp_context=context)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def submit(self, work: Work, *arguments: Any) -> Future[Any]:
        """Let a process begin at once."""
        return self._pool.submit(work, *arguments)

    def run(self, url: str, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Make calls `(work, *arguments)`, each with a planner in a process of its own, when all are ready.

        Returns their results in order, or raises what one of them raised.
        """
        assert len(calls) <= CREW
        with gate(url) as conn:
            futures = [self.submit(_work, url, *call) for call in calls]
            await_waiting(conn, len(calls), futures)
        return [future.result() for future in futures]


def _work(url: str, work: Work, *arguments: Any) -> Any:
    with connect(url) as planner:
        await_gate(url)
        return work(planner, *arguments)


def await_gate(url: str) -> None:
    """Wait until the gate is open."""
    with session(url) as conn:
        conn.execute("SELECT pg_advisory_xact_lock_shared(%s)", (GATE,))


@contextmanager
def gate(url: str) -> Iterator[Connection]:
    """Keep the gate shut; gives a session to look on from."""
    with session(url) as conn, conn.transaction():
        conn.execute("SELECT pg_advisory_xact_lock(%s)", (GATE,))
        yield conn


def await_waiting(
    conn: Connection, count: int, calls: Iterable[Future[Any]] = (), *, lock: str = "advisory"
) -> None:
    """Return when `count` sessions wait for a lock of this type; raise what a call raised before that."""
    while (conn.execute(WAITING, (lock,)).fetchone() or (0,))[0] < count:
        conn.execute("SELECT pg_stat_clear_snapshot()")  # inside a transaction the first look is kept
        for call in calls:
            if call.done():
                raise AssertionError(f"it did not wait: {call.result()}")
        time.sleep(0.01)


@contextmanager
def held(url: str, scope: str, table: str, event: str, work: Callable[[], Any]) -> Iterator[Future[Any]]:
    """Do work in a thread, up to where its transaction, which has this event on `table`, would commit.

    Inside the block the transaction has done everything and holds all its locks. At the end it commits.
    """
    named = {
        "event": sql.SQL(event),  # type: ignore[arg-type]
        "table": sql.Identifier(table),
        "row": sql.SQL("OLD" if event == "DELETE" else "NEW"),
        "scope_id": sql.Literal(scope_id(scope)),
    }
    with session(url) as conn:
        conn.execute(HOLD)
        conn.execute(sql.SQL(HELD).format(**named))
    with ThreadPoolExecutor(1) as thread:
        with gate(url) as conn:
            call = thread.submit(work)
            await_waiting(conn, 1, [call])
            yield call
            assert not call.done()
        call.result()
    with session(url) as conn:
        conn.execute(sql.SQL("DROP TRIGGER hold ON planner.{table}").format(**named))


class Meanwhile:
    """A clock that lets something happen when it is first asked: a writer has compared, and locks next."""

    def __init__(self, happen: Callable[[], Any]) -> None:
        self.happen: Callable[[], Any] | None = happen

    def __call__(self) -> datetime:
        happen, self.happen = self.happen, None
        if happen is not None:
            happen()
        return datetime.now(UTC)


def while_writing(planner: Planner, happen: Callable[[], Any]) -> Planner:
    """Return a planner whose next writer finds that something happened after it compared."""
    return Planner.from_pool(planner.engine.store.pool, **parts(), clock=Meanwhile(happen))


def deadlocks(url: str) -> int:
    """Return how many deadlocks PostgreSQL had to break in this database; exact once its sessions ended."""
    with session(url) as conn:
        row = conn.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return (row.fetchone() or (0,))[0]


def lost(expected: Iterable[Any], found: Iterable[Any]) -> int:
    """Return how many rows are missing, and how many there are that nobody wrote, or twice."""
    wanted, there = Counter(expected), Counter(found)
    return (wanted - there).total() + (there - wanted).total()
