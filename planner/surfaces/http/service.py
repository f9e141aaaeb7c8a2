"""What the surfaces of one application share, and one request as a route sees it.

A route reads and checks on the event loop only what is small: headers, path, query. What is large or slow,
parsing a body, planning, rendering, is one function that runs in a thread, as one call with a deadline; when
the client goes, the call is cancelled, and its statement with it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from planner.async_planner import AsyncPlanner
from planner.client import Planner
from planner.errors import CallCancelled, RequestError
from planner.surfaces.http.asgi import header
from planner.surfaces.http.limits import Deadline, Limits
from planner.surfaces.http.logs import note
from planner.surfaces.http.metrics import Metrics
from planner.surfaces.http.problems import BadMediaType, NotJson, SlowBody
from planner.surfaces.http.security import Access, Permission, bearer
from planner.surfaces.json_text import json_object

R = TypeVar("R")

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Service:
    """One planner with what is asked of every request to it: who, how much, how long, and what is counted.

    `calls` and `probes` have turns of their own, so that health is answered however many plans wait.
    """

    planner: Planner
    calls: AsyncPlanner
    probes: AsyncPlanner
    limits: Limits
    metrics: Metrics
    tokens: bool

    async def enter(self, scope: Scope, permission: Permission, deadline: Deadline) -> Access:
        """Return what a request may reach by its Authorization header. Raises as `admit` does."""
        return await self.admit(bearer(scope), permission, deadline) if self.tokens else Access()

    async def admit(self, token: str, permission: Permission, deadline: Deadline) -> Access:
        """Return what the holder of a token may reach. Raises Unauthorized, Forbidden, StoreError."""
        grant = await self.calls.run(self.planner.authenticate, token, deadline_ms=deadline.left_ms())
        access = Access(grant)
        access.require(permission)
        return access


@dataclass(frozen=True, slots=True)
class Part:
    """A further surface of the same application: its routes, and what it holds while the server runs."""

    routes: Sequence[BaseRoute]
    running: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext


PartOf = Callable[[Service], Part]
"""Makes a part: `create_app(…, parts=[viewer.part])`."""


def service_of(connection: HTTPConnection) -> Service:
    """Return the service of the application that a request came to."""
    service = connection.app.state.service
    assert isinstance(service, Service)
    return service


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request that was let in, and the way to its answer."""

    service: Service
    request: Request
    access: Access
    deadline: Deadline

    async def body(self) -> bytes:
        """Return a JSON body as it came. Raises BadMediaType, TooLarge, SlowBody, CallCancelled."""
        kind = (header(self.request.scope, "content-type") or "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise BadMediaType(f"send the body as {JSON}, not as {kind or 'nothing said'}")
        chunks = bytearray()
        with anyio.move_on_after(self.deadline.left_ms() / 1_000):
            while True:
                message = await self.request.receive()
                if message["type"] == "http.disconnect":
                    raise CallCancelled("the client went before its request was whole")
                chunks += message.get("body", b"")
                if not message.get("more_body", False):
                    return bytes(chunks)
        raise SlowBody()

    async def answer(self, work: Callable[[], Mapping[str, Any]]) -> Response:
        """Answer with the JSON that `work` returns, which runs as one call. Raises what it raises."""
        return await self.run(lambda: rendered(self.noted(work())))

    async def run(self, work: Callable[[], R]) -> R:
        """Do work in a thread until the deadline, or until the client goes. Raises what it raises."""
        calls, deadline_ms = self.service.calls, self.deadline.left_ms()
        return await while_there(self.request, lambda: calls.run(guarded, work, deadline_ms=deadline_ms))

    def noted(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an answer whose plan is named in the log."""
        plan = said.get("plan")
        note(self.request.scope, plan=plan if isinstance(plan, str) else None)
        return said


async def while_there(request: Request, work: Callable[[], Awaitable[R]]) -> R:
    """Await work, and cancel it when the client goes. Raises CallCancelled then, else what it raises."""
    result: list[R] = []
    error: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            result.append(await work())
        except Exception as raised:
            error.append(raised)
        tasks.cancel_scope.cancel()
    if error:
        raise error[0]
    if not result:
        raise CallCancelled("the client went before its answer was ready")
    return result[0]


def guarded(work: Callable[[], R]) -> R:
    """Do work on what a client sent. Raises RequestError where that is nested beyond what can be read."""
    try:
        return work()
    except RecursionError:
        raise RequestError("the body is nested too deeply", field="body") from None


def fields_of(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body. Raises NotJson."""
    try:
        return json_object(body, "the body")
    except RequestError as error:
        raise NotJson(str(error), field="body") from None


def rendered(said: Mapping[str, Any]) -> Response:
    """Return JSON data as an answer; a lone surrogate, of a file name say, becomes JSON's escape for it."""
    text = json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "backslashreplace"), media_type=JSON)
