"""`planner serve`: it begins and ends as an operator expects, and `planner plans` sees what it did."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from planner import Planner
from planner.embedded import EmbeddedServer
from planner.surfaces.cli import serve as command
from tests.acceptance.running import SCOPE, Cli
from tests.integration.repeated import WAITING
from tests.served import served

SECRETS = ("storm gate", "When does the storm", "harbour-gate.md", "closes at a forecast", "turn-key-1")


def test_it_serves_what_was_there_before_and_logs_nothing_that_was_sent(database_url: str) -> None:
    given = ("--database-url", database_url)
    key = {"Idempotency-Key": "turn-key-1"}
    turn = {"messages": [{"content": "The storm gate is open."}]}
    at = "/v1/scopes/notes/sources"
    with served(*given) as first:
        body = {"id": "harbour-gate.md", "text": "The storm gate closes at a forecast of 2.9 m."}
        assert httpx.post(first.url + at, json=body, timeout=60).status_code == 200
        assert httpx.post(f"{first.url}{at}/talk/append", json=turn, headers=key).status_code == 200
        question = {"scope": "notes", "text": "When does the storm gate close?"}
        made = httpx.post(f"{first.url}/v1/plans", json=question, headers={"X-Request-Id": "asked-1"}).json()
        httpx.get(f"{first.url}/v1/plans/{made['plan']}/why", params={"what": "closes at a forecast"})
        httpx.get(f"{first.url}{at}/harbour-gate.md")
        httpx.get(f"{first.url}/storm gate")
        assert first.stop() == 0
    with served(*given) as second:
        again = httpx.post(f"{second.url}{at}/talk/append", json=turn, headers=key, timeout=60).json()
        assert again["sources"][0]["status"] == "unchanged"
        assert httpx.get(f"{second.url}/v1/plans/{made['plan']}").json()["plan_hash"] == made["plan_hash"]
        assert second.stop() == 0
    assert (first.logged[0]["tokens"], first.logged[-1]["event"]) == (False, "stopped")
    said = repr(first.logged + second.logged)
    assert [secret for secret in SECRETS if secret in said] == []
    (line,) = [line for line in first.logged if line.get("request_id") == "asked-1"]
    assert (line["route"], line["status"], line["plan"]) == ("/v1/plans", 200, made["plan"])


def test_told_to_stop_it_finishes_what_runs(database_url: str) -> None:
    with Planner.connect(database_url) as planner:
        planner.ingest_text("notes", "a.md", "The gate closes at ten.")
    with (
        psycopg.connect(database_url, autocommit=True) as other,
        served("--database-url", database_url) as process,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute("BEGIN")
        other.execute("LOCK TABLE planner.node IN ACCESS EXCLUSIVE MODE")
        running = pool.submit(
            httpx.post, f"{process.url}/v1/plans", json={"scope": "notes", "text": "gate"}, timeout=60
        )
        with psycopg.connect(database_url, autocommit=True) as observer:
            while observer.execute(WAITING).fetchone() is None:
                assert not running.done()
        process.process.terminate()
        while _listens(process.url):
            assert not running.done()
        other.execute("COMMIT")
        assert running.result().status_code == 200
        assert process.ended() == 0


def test_an_address_that_others_can_reach_asks_for_tokens_whatever_is_said(database_url: str) -> None:
    with served("--host", "0.0.0.0", "--database-url", database_url) as process:
        assert process.logged[0]["tokens"] is True
        url = process.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{url}/v1/plans?scope=notes", timeout=60).status_code == 401
        assert httpx.get(f"{url}/livez", headers={"Host": "planner.example"}).status_code == 200


def test_it_works_on_the_embedded_server_which_ends_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with served("--data-dir", str(folder)) as process:
        assert httpx.get(f"{process.url}/readyz", timeout=60).json()["ready"] is True
        assert EmbeddedServer(folder).status().running
        assert process.stop() == 0
    EmbeddedServer(folder).stop()


def test_a_port_that_is_taken_is_named(cli: Cli, corpus_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    monkeypatch.setattr("planner.surfaces.http.logs.configure", lambda **_: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = cli("serve", "--port", port, "--database-url", corpus_url)
    assert ran.code == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in ran.err


def test_plans_are_listed_newest_first(corpus: Cli) -> None:
    planned = corpus("plan", SCOPE, "Who keeps the storm gate?", "--json").json["plan"]
    told = corpus("plans", SCOPE, "--json").json
    assert told["plans"][0]["plan"] == planned
    page = corpus("plans", SCOPE, "--limit", "1")
    newest = told["plans"][0]
    assert newest["plan"] in page.out
    corpus("plan", SCOPE, "And who opens it?")
    assert f"more: --after {newest['plan_id']}" not in corpus("plans", SCOPE, "--limit", "1").out
    rest = corpus("plans", SCOPE, "--after", newest["plan_id"], "--json").json
    assert rest["plans"][: len(told["plans"]) - 1] == told["plans"][1:]
    assert "no plan" in corpus("plans", SCOPE, "--text", "a question that nobody asked").out
    bad = corpus("plans", SCOPE, "--since", "yesterday", "--json")
    assert (bad.code, bad.problem["field"]) == (2, "since")


def _listens(url: str) -> bool:
    try:
        httpx.get(f"{url}/livez", timeout=5)
    except httpx.ConnectError:
        return False
    return True
