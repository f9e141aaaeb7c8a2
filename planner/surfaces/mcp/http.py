"""The tools over streamable HTTP, at /mcp of the service: its tokens, its limits, its log.

Without sessions: each request is answered by whichever worker has it, and there is nothing to keep or to
steal. A client that goes takes its statement with it. Only POST is answered: no stream outlives a request.
"""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from planner.surfaces.http.limits import Deadline
from planner.surfaces.http.logs import note
from planner.surfaces.http.problems import SlowBody
from planner.surfaces.http.security import Access, bearer
from planner.surfaces.http.service import Part, Service
from planner.surfaces.mcp.caller import Caller
from planner.surfaces.mcp.server import Visit, make_server

PATH = "/mcp"

VISIT = "planner.mcp.visit"
"""Where a request keeps what was found of it."""


class Endpoint:
    """The application of the path: lets a request in, then hands it to the protocol's library."""

    def __init__(self, service: Service) -> None:
        """Make it for one service, to be run once."""
        self.service = service
        self.manager = StreamableHTTPSessionManager(
            app=make_server(service.calls, _visit),
            stateless=True,
            max_request_body_size=service.limits.max_body_bytes,
        )

    def running(self) -> AbstractAsyncContextManager[Any]:
        """Hold what answers while the service runs."""
        return self.manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises RequestError, Unauthorized, StoreError, SlowBody, TooLarge."""
        service, deadline = self.service, Deadline.of(scope, self.service.limits)
        access = Access()
        if service.tokens:
            authenticate = service.planner.authenticate
            grant = await service.calls.run(authenticate, bearer(scope), deadline_ms=deadline.left_ms())
            access = Access(grant)
        caller = Caller(access)
        scope[VISIT] = Visit(lambda: caller, deadline.left_ms, partial(note, scope))
        await self.manager.handle_request(scope, _timely(receive, deadline), send)


def mounted(service: Service) -> Part:
    """Return the route, and what has to run for it."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)  # it writes down what was sent
    endpoint = Endpoint(service)
    return Part([Route(PATH, endpoint, methods=["POST"])], endpoint.running)


def _visit(request: Request) -> Visit:
    visit = request.scope[VISIT]
    assert isinstance(visit, Visit)
    return visit


def _timely(receive: Receive, deadline: Deadline) -> Receive:
    """Return a `receive` that waits for a body no longer than until the deadline."""
    is_whole = False

    async def received() -> Message:
        nonlocal is_whole
        if is_whole:
            return await receive()
        with anyio.move_on_after(deadline.left_ms() / 1_000):
            message = await receive()
            is_whole = message["type"] != "http.request" or not message.get("more_body", False)
            return message
        raise SlowBody()

    return received
