"""The tools on standard input and output, for a client that starts the server as its own process.

Nothing but the protocol is on standard output, and no content in what is written to standard error.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from planner.async_planner import AsyncPlanner
from planner.client import Planner
from planner.surfaces.http.security import Access
from planner.surfaces.mcp.caller import Caller
from planner.surfaces.mcp.server import Visit, make_server


def run(planner: Planner, *, token: str | None, scope: str | None, read_only: bool) -> None:
    """Serve until standard input ends: the holder of a token, else the operator, in one scope or in all.

    A token is looked up for each call, so that one that is revoked ends at once. Raises Unauthorized where it
    is not valid now.
    """
    _log_to_stderr()

    def admit() -> Caller:
        if token is None:
            return Caller.operator(scope, read_only=read_only)
        return Caller(Access(planner.authenticate(token)), read_only)

    admit()
    allowed = planner.engine.settings.deadline_ms
    visit = Visit(admit, lambda: allowed)
    anyio.run(_serve, planner, visit)


async def _serve(planner: Planner, visit: Visit) -> None:
    def asked(request: Any) -> Visit:
        return visit

    server = make_server(AsyncPlanner(planner), asked)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _log_to_stderr() -> None:
    """Write warnings to standard error; none of the protocol's library, which writes down what was sent."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
