"""The tools while they run: clients that give up or go, deadlines, a server that dies, what is logged."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import anyio
import httpx2
import psutil
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from planner import Planner, Settings
from planner.surfaces.http import logs
from tests.integration.graph import Connection
from tests.integration.repeated import WAITING
from tests.integration.test_calls import locked
from tests.integration.test_http_serving import answered, raw
from tests.mcp_service import MAIN, Connect, Mode, asking, over_http, over_stdio, served, text_of

ASKED = {"scope": "s", "question": "Where is the gate?", "budget_tokens": 300}


@pytest.fixture
def filled(database_url: str) -> Iterator[Planner]:
    """Give a planner whose scope `s` holds a sentence."""
    with Planner.connect(database_url) as planner:
        planner.ingest_text("s", "gate.md", "The gate is at the mouth of the basin.")
        yield planner


@contextmanager
def connected(transport: str, filled: Planner, url: str, mode: Mode) -> Iterator[Connect]:
    if transport == "stdio":
        yield partial(over_stdio, url, mode=mode)
        return
    with served(filled) as base:
        yield partial(over_http, base, mode=mode)


async def until_waiting(observer: Connection, *, waits: bool) -> None:
    """Wait until a statement of the planner's waits for a lock, or none does any more."""
    while bool(await anyio.to_thread.run_sync(lambda: observer.execute(WAITING).fetchone())) != waits:
        await anyio.sleep(0.01)


@pytest.mark.parametrize(("transport", "mode"), [("http", "auto"), ("stdio", "auto"), ("stdio", "legacy")])
def test_who_gives_up_takes_the_statement_along(
    transport: str,
    mode: Mode,
    filled: Planner,
    database_url: str,
    other: Connection,
    observer: Connection,
) -> None:
    async def work(client: Client) -> CallToolResult:
        await client.list_tools()
        with locked(other, "node"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "get_context", ASKED)
                await until_waiting(observer, waits=True)
                tasks.cancel_scope.cancel()
            await until_waiting(observer, waits=False)
        return await client.call_tool("get_context", ASKED)

    with connected(transport, filled, database_url, mode) as connect:
        assert not asking(connect, work).is_error
    rows = other.execute("SELECT outcome, error_code FROM planner.plan ORDER BY plan_id").fetchall()
    assert rows == [("failed", "call.cancelled"), ("planned", None)]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_connection_that_ends_takes_the_statement_along(
    mode: Mode, filled: Planner, other: Connection, observer: Connection
) -> None:
    async def main(base: str) -> None:
        with locked(other, "node"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(asked, base)
                await until_waiting(observer, waits=True)
                tasks.cancel_scope.cancel()
            await until_waiting(observer, waits=False)

    async def asked(base: str) -> None:
        async with over_http(base, mode=mode) as client:
            await client.call_tool("get_context", ASKED)

    with served(filled) as base:
        anyio.run(main, base)


def test_a_deadline_reaches_the_statement(
    filled: Planner, database_url: str, other: Connection, observer: Connection
) -> None:
    async def work(client: Client) -> None:
        with locked(other, "node"):
            late = await client.call_tool("get_context", ASKED)
            assert late.is_error
            assert late.structured_content["code"] == "call.deadline"
            await until_waiting(observer, waits=False)

    async def in_time(base: str) -> None:
        headers = {"X-Deadline-Ms": "300"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{base}/mcp", http_client=http)) as client,
        ):
            await work(client)

    with served(filled) as base:
        anyio.run(in_time, base)
    asking(partial(over_stdio, database_url, "--set", "deadline_ms=300"), work)


def test_a_body_is_held_to_the_limits_of_the_service(database_url: str) -> None:
    with (
        Planner.connect(database_url, settings=Settings(max_body_bytes=1_000)) as planner,
        served(planner) as base,
    ):
        late = b'X-Deadline-Ms: 100\r\nContent-Length: 100\r\n\r\n{"jsonrpc":'
        with raw(base, "POST /mcp HTTP/1.1", late) as slow:
            assert answered(slow) == (408, "http.slow_body")
        for head in (
            b"Content-Length: 2000\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + b" " * 2_000,
        ):
            with raw(base, "POST /mcp HTTP/1.1", head) as large:
                assert answered(large) == (413, "http.too_large")


def test_a_server_that_is_killed_is_an_error_and_leaves_nothing(
    filled: Planner, database_url: str, other: Connection, observer: Connection
) -> None:
    async def work(client: Client) -> None:
        with locked(other, "node"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(refused, client)
                await until_waiting(observer, waits=True)
                for child in psutil.Process().children(recursive=True):
                    if "mcp" in child.cmdline():
                        child.kill()
        await until_waiting(observer, waits=False)

    async def refused(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.call_tool("get_context", ASKED)

    with suppress(ExceptionGroup):  # the client's own end, whose pipes are broken
        asking(partial(over_stdio, database_url), work)
    assert other.execute("SELECT count(*) FROM planner.plan").fetchall() == [(0,)]
    assert not asking(partial(over_stdio, database_url), partial(called, "get_context", ASKED)).is_error


async def called(name: str, arguments: dict[str, Any], client: Client) -> CallToolResult:
    return await client.call_tool(name, arguments)


@contextmanager
def speaking(url: str, token: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Start a server on stdio, and see it end."""
    environment = {**os.environ, "PLANNER_DATABASE_URL": url} | ({"PLANNER_TOKEN": token} if token else {})
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", MAIN, "mcp"], env=environment, **pipes) as process:
        yield process


def call_of(number: int, name: str, **arguments: object) -> bytes:
    """Return a call as a client of the new form writes it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


SECRET = "Sesame, open by night"


def test_on_stdio_nothing_but_the_protocol_is_said_and_no_content_is_written_down(
    filled: Planner, database_url: str
) -> None:
    said = (
        f"{SECRET} is no JSON".encode(),
        b'{"jsonrpc": "2.0", "id": "' + SECRET.encode() + b'", "method": 7}',
        b"\xff\xfe",
        call_of(1, "remember", scope="s", source="secret.md", text=SECRET),
        call_of(2, "get_context", scope="s", question=SECRET, budget_tokens=300),
        call_of(3, SECRET),
        call_of(4, "get_context", scope="s", question=[SECRET], budget_tokens=300),
        call_of(5, "why", plan=SECRET, what=SECRET, budget_tokens=300),
    )
    with speaking(database_url) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(line + b"\n" for line in said))
        process.stdin.flush()
        missing = {1, 2, 3, 4, 5}
        while missing:
            answer = json.loads(process.stdout.readline())
            assert answer["jsonrpc"] == "2.0"
            missing.discard(answer.get("id"))
        out, err = process.communicate()
    assert (process.returncode, out) == (0, b"")
    assert SECRET.encode() not in err
    assert b"Traceback" not in err


def test_over_http_no_content_and_no_token_is_written_down(filled: Planner) -> None:
    token = filled.create_token("s", label="all", permissions=["read", "write", "inspect"]).text
    kept = logging.getLogger().handlers[:], logging.getLogger().level
    written = io.StringIO()
    logs.configure(as_json=True, stream=written)

    async def work(client: Client) -> None:
        await client.call_tool("remember", {"source": f"{SECRET}.md", "text": SECRET})
        found = await client.call_tool("get_context", {"question": SECRET, "budget_tokens": 300})
        plan = found.structured_content["plan"]
        await client.call_tool("why", {"plan": plan, "what": SECRET, "budget_tokens": 300})
        await client.call_tool("get_context", {"question": [SECRET], "budget_tokens": 300})
        with pytest.raises(MCPError):
            await client.call_tool(SECRET, {})

    try:
        with served(filled, tokens=True) as base:
            asking(partial(over_http, base, token), work)
    finally:
        logging.getLogger().handlers[:], level = kept
        logging.getLogger().setLevel(level)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    said = [line for line in lines if line.get("route") == "/mcp"]
    assert [line["tool"] for line in said if "tool" in line] == [
        "remember",
        "get_context",
        "why",
        "get_context",
    ]
    assert [line["code"] for line in said if "code" in line] == ["request.invalid"]
    assert sum("plan" in line for line in said) >= 2
    assert not any(secret in written.getvalue() for secret in (SECRET, token, token.partition(".")[2]))


def test_on_stdio_a_token_is_its_holders(filled: Planner, database_url: str) -> None:
    reader = filled.create_token("s", label="reader", permissions=["read"])

    async def work(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["get_context", "read_source", "verify_citation"]
        found = await client.call_tool("get_context", {"question": "gate", "budget_tokens": 300})
        assert "mouth of the basin" in text_of(found)
        written = await client.call_tool("remember", {"source": "a.md", "text": "A text."})
        assert (written.is_error, written.structured_content["code"]) == (True, "auth.forbidden")
        await anyio.to_thread.run_sync(filled.revoke_token, "s", reader.token.token_id)
        ended = await client.call_tool("get_context", {"question": "gate", "budget_tokens": 300})
        assert (ended.is_error, ended.structured_content["code"]) == (True, "auth.unauthorized")

    asking(partial(over_stdio, database_url, token=reader.text), work)
    with speaking(database_url, reader.text) as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert b"the access token is not valid" in err


def test_on_stdio_the_operator_may_be_held_to_a_scope_and_to_reading(
    filled: Planner, database_url: str
) -> None:
    filled.ingest_text("other", "gate.md", "The gate of the other is here.")
    plan = str(filled.plan("other", "gate").ref)

    async def work(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["get_context", "read_source", "verify_citation", "why"]
        found = await client.call_tool("get_context", {"question": "gate", "budget_tokens": 300})
        assert "mouth of the basin" in text_of(found)
        for name, arguments, code in (
            ("get_context", {**ASKED, "scope": "other"}, "not_found.scope"),
            ("why", {"plan": plan, "what": "x", "budget_tokens": 99}, "not_found.plan"),
            ("remember", {"source": "a.md", "text": "A text."}, "auth.forbidden"),
        ):
            refused = await client.call_tool(name, arguments)
            assert (refused.is_error, refused.structured_content["code"]) == (True, code)

    asking(partial(over_stdio, database_url, "--scope", "s", "--read-only"), work)
