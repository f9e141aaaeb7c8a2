"""Clients in processes of their own, which stop at a stage of an operation, so that something dies there.

A client is forked from a server that has everything imported. It says that it has come to its stage, and
waits in the middle of its operation until it is told to go on or is killed.
"""

from __future__ import annotations

import logging
import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection as Pipe
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from planner import Planner, Settings
from planner.errors import PlannerError
from planner.store import connect
from planner.store.upgrade import migrate
from tests.faults.operations import ALONE, OPERATIONS
from tests.faults.stages import Watch
from tests.integration.graph import Connection, circle_embedder

MIGRATE = "migrate"
"""The operation that knows no scope."""

PATIENCE_SECONDS = 120
"""How long something may take that must come; only a broken test waits as long."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__, "planner.embedders", "alembic.command"])


@dataclass(frozen=True)
class Answer:
    """How a call ended: the code of its error, None where it gave its answer."""

    code: str | None = None
    said: str = ""


class Client:
    """Another process that makes a call, stops in it at a stage, and makes it again when it is told to."""

    def __init__(self, url: str, operation: str, scope: str, stage: str) -> None:
        """Start the call."""
        self.url, self.operation, self.scope, self.stage = url, operation, scope, stage
        self._pipe, theirs = _context.Pipe()
        self._process = _context.Process(
            target=_be_client, args=(theirs, url, operation, scope, stage), daemon=True
        )
        self._process.start()
        theirs.close()

    def stopped(self) -> int:
        """Wait until the client stands at its stage; return the pid of the backend that serves it."""
        pid = self._told()
        assert isinstance(pid, int), f"{self.operation} did not come to {self.stage}: {pid}"
        return pid

    def go(self) -> None:
        """Let the client go on: to the end of the call, or from there through the second call."""
        self._pipe.send(True)

    def answer(self) -> Answer:
        """Wait for the end of a call."""
        answer = self._told()
        assert isinstance(answer, Answer), answer
        return answer

    def kill(self) -> None:
        """Send SIGKILL; return when the process is dead."""
        self._process.kill()
        self._process.join()

    def _told(self) -> object:
        assert self._pipe.poll(PATIENCE_SECONDS), f"{self.operation}, {self.stage}: the client says nothing"
        return self._pipe.recv()


@contextmanager
def standing(starts: Iterable[tuple[str, str, str, str]]) -> Iterator[tuple[list[Client], list[int]]]:
    """Give clients, each at its stage, and the pids of their backends; they do not outlive the block."""
    with ExitStack() as stack:
        clients = []
        for start in starts:
            clients.append(Client(*start))
            stack.callback(clients[-1].kill)
        yield clients, [client.stopped() for client in clients]


def judged(check: Callable[[Client], int], clients: list[Client]) -> Iterator[tuple[Client, int]]:
    """Yield each client with the number of rows that `check` misses; two are looked at together."""
    with ThreadPoolExecutor(2) as pool:
        yield from zip(clients, pool.map(check, clients), strict=True)


def _be_client(pipe: Pipe, url: str, operation: str, scope: str, stage: str) -> None:
    logging.disable()  # that connections were lost is known
    watch = Watch()

    def at(reached: str, conn: Connection) -> None:
        if reached == stage:
            watch.at = None
            pipe.send(conn.info.backend_pid)
            pipe.recv()

    try:
        with calling(url, operation, watch) as call:
            watch.begin(at)
            pipe.send(answered(call, scope))
            while pipe.recv():
                pipe.send(answered(call, scope))
    except (EOFError, ConnectionError):  # the test is over
        return
    except BaseException:
        pipe.send(traceback.format_exc())


def answered(call: Callable[[str], Any], scope: str) -> Answer:
    """Make a call; only an error that has a code is an answer."""
    try:
        call(scope)
    except PlannerError as error:
        return Answer(error.code, str(error))
    return Answer()


@contextmanager
def calling(url: str, operation: str, watch: Watch) -> Iterator[Callable[[str], Any]]:
    """Give an operation as a function of the scope, in a client that is watched."""
    if operation == MIGRATE:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(psycopg, "connect", watch.connections().connect)
            yield lambda _: migrate(url)
        return
    with opened(url, watch, pool_size=1) as planner:
        yield partial((OPERATIONS | ALONE)[operation].call, planner)


@contextmanager
def opened(url: str, watch: Watch | None = None, **settings: Any) -> Iterator[Planner]:
    """Open a planner with the embedder of the tests, whose connections may be watched."""
    with pytest.MonkeyPatch.context() as patch:
        if watch is not None:
            watched = partial(ConnectionPool, connection_class=watch.connections())
            patch.setattr(connect, "ConnectionPool", watched)
        made = Planner.connect(url, settings=Settings(**settings), embedder=circle_embedder())
    with made as planner:
        yield planner


def session(url: str) -> Connection:
    """Open a superuser's session, as soon as the server lets one in."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return psycopg.connect(url, autocommit=True, prepare_threshold=None)
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "the server did not come back"
            time.sleep(0.02)


def until_gone(conn: Connection, pids: list[int]) -> None:
    """Wait until backends have ended, which they do when they find that their client has."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while conn.execute("SELECT 1 FROM pg_stat_activity WHERE pid = ANY (%s)", (pids,)).fetchone():
        assert time.monotonic() < deadline, "a backend outlives its client"
        time.sleep(0.002)
