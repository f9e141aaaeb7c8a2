"""The service on a socket: clients that go or dawdle, a pool that is full, a loop that is never held."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from planner import Planner, Settings
from planner.embedders import CallableEmbedder
from planner.errors import EmbedderError
from planner.surfaces.http import service
from planner.surfaces.http.app import create_app
from planner.surfaces.http.server import listening
from tests.http_service import client, listener
from tests.integration.graph import MODEL, Connection, circle, circle_embedder, fan
from tests.integration.repeated import WAITING, waiting_pid
from tests.integration.test_calls import locked

QUESTION = {"scope": "s", "text": "at 0"}


@contextmanager
def served(
    url: str, embed: Callable[[list[str]], Any] = circle, **settings: int
) -> Iterator[tuple[Planner, str]]:
    """Serve a planner whose scope `s` holds two facts."""
    embedder = CallableEmbedder(MODEL, 2, embed)
    with Planner.connect(url, settings=Settings(**settings), embedder=embedder) as planner:
        fan(0, 30).into(Planner.from_pool(planner.engine.store.pool, embedder=circle_embedder()), "s")
        with listener(create_app(planner, tokens=False)) as base:
            yield planner, base


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def post(base: str, path: str = "/v1/plans", **headers: str) -> httpx.Response:
    return httpx.post(base + path, json=QUESTION, headers=headers, timeout=60)


def is_idle(planner: Planner) -> bool:
    stats = planner.engine.store.pool.get_stats()
    return bool(stats["pool_available"] == stats["pool_size"])


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds; what never does is stopped by the test's time limit."""
    while not holds():
        time.sleep(0.01)


def raw(base: str, head: str, body: bytes = b"") -> socket.socket:
    """Open a connection and send the beginning of a request."""
    where = urlsplit(base)
    sent = socket.create_connection((where.hostname or "", where.port or 0), timeout=60)
    sent.sendall(f"{head}\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode() + body)
    return sent


def answered(sent: socket.socket) -> tuple[int, str]:
    """Return the status and the code of a problem that comes back."""
    answer = HTTPResponse(sent)
    answer.begin()
    return answer.status, json.loads(answer.read())["code"]


def test_what_is_accepted_sends_at_once() -> None:
    with listening("127.0.0.1", 0) as bound, socket.create_connection(bound.getsockname()):
        accepted, _ = bound.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_client_that_goes_takes_its_statement_with_it(
    database_url: str, other: Connection, observer: Connection
) -> None:
    with served(database_url, pool_size=1) as (planner, base):
        body = json.dumps(QUESTION).encode()
        with locked(other, "node"):
            gone = raw(
                base, "POST /v1/plans HTTP/1.1", f"Content-Length: {len(body)}\r\n\r\n".encode() + body
            )
            until(lambda: observer.execute(WAITING).fetchone())
            gone.close()
            until(lambda: not observer.execute(WAITING).fetchone())
            until(lambda: is_idle(planner))
        assert post(base).status_code == 200
        rows = other.execute("SELECT outcome, error_code FROM planner.plan ORDER BY plan_id").fetchall()
        assert rows == [("failed", "call.cancelled"), ("planned", None)]


def test_a_client_that_goes_within_its_body_leaves_nothing(database_url: str, other: Connection) -> None:
    with served(database_url, pool_size=1) as (planner, base):
        before = httpx.get(f"{base}/metrics").text
        raw(base, "POST /v1/plans HTTP/1.1", b'Content-Length: 100\r\n\r\n{"scope":').close()
        until(lambda: 'status="499"' in httpx.get(f"{base}/metrics").text)
        assert 'status="499"' not in before
        assert is_idle(planner)
        assert other.execute("SELECT count(*) FROM planner.plan").fetchall() == [(0,)]


def test_a_body_that_does_not_come_is_not_waited_for(database_url: str) -> None:
    with served(database_url) as (_, base):
        head = b'X-Deadline-Ms: 100\r\nContent-Length: 100\r\n\r\n{"scope":'
        with raw(base, "POST /v1/plans HTTP/1.1", head) as slow:
            assert answered(slow) == (408, "http.slow_body")


def test_a_body_in_chunks_is_read_no_further_than_it_may_be(database_url: str) -> None:
    with served(database_url, max_body_bytes=1_000) as (_, base):
        chunk = b"190\r\n" + b" " * 0x190 + b"\r\n"
        with raw(
            base, "POST /v1/plans HTTP/1.1", b"Transfer-Encoding: chunked\r\n\r\n" + 3 * chunk
        ) as endless:
            assert answered(endless) == (413, "http.too_large")


def test_a_deadline_reaches_the_statement(database_url: str, other: Connection, observer: Connection) -> None:
    with served(database_url) as (planner, base):
        with locked(other, "node"):
            for path in ("/v1/plans", "/v1/context"):
                late = post(base, path, **{"X-Deadline-Ms": "200"})
                assert (late.status_code, late.json()["code"]) == (504, "call.deadline")
            until(lambda: not observer.execute(WAITING).fetchone())
        until(lambda: is_idle(planner))
        assert post(base, **{"X-Deadline-Ms": "20000"}).status_code == 200


def test_a_full_pool_says_when_to_come_back_and_health_is_answered_meanwhile(
    database_url: str, other: Connection, observer: Connection, pool: ThreadPoolExecutor
) -> None:
    with served(database_url, pool_size=1, pool_wait_ms=50) as (planner, base):
        with locked(other, "node"):
            running = pool.submit(post, base)
            waiting_pid(observer, running)
            for refused in [future.result() for future in [pool.submit(post, base) for _ in range(4)]]:
                assert (refused.status_code, refused.json()["code"]) == (503, "store.busy")
                assert refused.headers["retry-after"] == "1"
            assert httpx.get(f"{base}/livez").status_code == 200
            ready = httpx.get(f"{base}/readyz")
            assert (ready.status_code, ready.json()["pool"]) == (200, "busy")
            gauges = httpx.get(f"{base}/metrics").text
            assert 'planner_pool_connections{state="used"} 1.0' in gauges
        assert running.result().status_code == 200
        until(lambda: is_idle(planner))
        assert httpx.get(f"{base}/readyz").json() == {
            "ready": True,
            "schema": "ok",
            "pool": "ok",
            "embedder": "ok",
        }
        assert 'planner_pool_connections{state="used"} 0.0' in httpx.get(f"{base}/metrics").text


def test_while_plans_think_the_loop_beats(database_url: str, pool: ThreadPoolExecutor) -> None:
    thinking, think = threading.Semaphore(0), threading.Event()

    def embed(texts: list[str]) -> Any:
        thinking.release()
        think.wait()
        return circle(texts)

    with served(database_url, embed, pool_size=2) as (_, base):
        running: list[Future[httpx.Response]] = [pool.submit(post, base) for _ in range(2)]
        for _ in running:
            thinking.acquire()
        try:
            for _ in range(10):
                assert httpx.get(f"{base}/livez").json() == {"status": "alive"}
            assert httpx.get(f"{base}/openapi.json").status_code == 200
        finally:
            think.set()
        assert [future.result().status_code for future in running] == [200, 200]


def test_bodies_are_parsed_and_answers_rendered_outside_of_the_loop(
    planner: Planner, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def outside(name: str) -> None:
        does = getattr(service, name)

        def watched(*args: Any) -> Any:
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            seen.append(name)
            return does(*args)

        monkeypatch.setattr(service, name, watched)

    outside("json_object")
    outside("rendered")
    with client(planner) as http:
        made = http.post(f"/v1/scopes/{scope}/sources", json={"id": "a.md", "text": "A text at 0"})
        plan = http.post("/v1/plans", json={"scope": scope, "text": "at 0"})
        assert (made.status_code, plan.status_code) == (200, 200)
        assert http.get(f"/v1/plans/{plan.json()['plan']}").status_code == 200
    assert seen == ["json_object", "rendered", "json_object", "rendered", "rendered"]


def test_what_runs_is_finished_when_the_server_is_told_to_stop(
    database_url: str, other: Connection, observer: Connection, pool: ThreadPoolExecutor
) -> None:
    other.execute("BEGIN")
    with served(database_url) as (_, base):
        other.execute("LOCK TABLE planner.node IN ACCESS EXCLUSIVE MODE")
        running = pool.submit(post, base)
        waiting_pid(observer, running)

        def let_go() -> None:
            until(lambda: refuses(base))
            assert not running.done()
            other.execute("COMMIT")

        released = pool.submit(let_go)
    released.result()
    assert running.result().status_code == 200


def refuses(base: str) -> bool:
    """Say whether nobody accepts connections any more."""
    try:
        httpx.get(f"{base}/livez", timeout=5)
    except httpx.ConnectError:
        return True
    return False


def test_readiness_names_what_is_wrong(database_url: str, other: Connection) -> None:
    def broken() -> Any:
        raise EmbedderError("no weights")

    with served(database_url) as (planner, base):
        for revision, code in (("0000_old", "store.schema_behind"), ("9999_new", "store.schema_ahead")):
            (found,) = other.execute("SELECT version_num FROM planner.alembic_version").fetchone() or ("",)
            other.execute("UPDATE planner.alembic_version SET version_num = %s", [revision])
            ready = httpx.get(f"{base}/readyz")
            other.execute("UPDATE planner.alembic_version SET version_num = %s", [found])
            assert (ready.status_code, ready.json()["schema"]) == (503, code)
        assert httpx.get(f"{base}/readyz").status_code == 200
        with client(Planner(replace(planner.engine, embedder=broken))) as http:
            ready = http.get("/readyz")
            assert (ready.status_code, ready.json()["embedder"]) == (503, "embedder.failed")
