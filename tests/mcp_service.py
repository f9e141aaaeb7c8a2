"""Clients of the tools for tests: the protocol's own, over HTTP, and on stdio with a process of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Literal, TypeVar

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from planner import Planner
from planner.surfaces.http.app import create_app
from planner.surfaces.mcp import part
from tests.http_service import listener

R = TypeVar("R")

Mode = Literal["auto", "legacy"]
"""The protocol without sessions (2026-07-28), or the handshake that came before it."""

Connect = Callable[[], AbstractAsyncContextManager[Client]]

MAIN = "import sys; from planner.surfaces.cli import main; sys.exit(main())"


@contextmanager
def served(planner: Planner, *, tokens: bool = False) -> Iterator[str]:
    """Serve a planner's routes and tools as `planner serve` does; give the URL."""
    with listener(create_app(planner, tokens=tokens, parts=[part])) as base:
        yield base


@asynccontextmanager
async def over_http(base: str, token: str | None = None, mode: Mode = "auto") -> AsyncIterator[Client]:
    """Give a client of the tools at a URL."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{base}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(
    url: str, *arguments: str, token: str | None = None, mode: Mode = "auto"
) -> AsyncIterator[Client]:
    """Give a client of a process that serves the tools of a database."""
    environment = {"PLANNER_DATABASE_URL": url} | ({} if token is None else {"PLANNER_TOKEN": token})
    command = ["-c", MAIN, "mcp", *arguments]
    server = StdioServerParameters(command=sys.executable, args=command, env=environment)
    async with Client(server, mode=mode) as client:
        yield client


def asking(connect: Connect, work: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
    """Connect, do what is asked of the client, and return what it returned."""

    async def main() -> R:
        async with connect() as client:
            return await work(client)

    return anyio.run(main)


def text_of(result: CallToolResult) -> str:
    """Return the one text of an answer."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
