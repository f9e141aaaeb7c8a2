"""What the service writes down: one line a request, as JSON or for a terminal, never what was sent.

Routes are named by their templates, plans by their references; no question, no text, no source id, no token.
Of an error that nobody foresaw it is the class and the lines of code that are kept: its message may hold
what was sent.
"""

from __future__ import annotations

import logging
import re
import secrets
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any, TextIO

import structlog
from starlette.datastructures import MutableHeaders
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planner.errors import PlannerError
from planner.surfaces.http.asgi import header, sending
from planner.surfaces.http.metrics import Metrics
from planner.surfaces.http.problems import problem, unexpected

REQUEST_ID = "X-Request-Id"

SANE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a client may call its request; anything else gets an id of ours."""

OF_A_ROUTER = "unmatched"
"""The route of a request that none answers: its path is not ours to write down."""

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]

log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    logging.getLogger("planner.http"),
    processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    wrapper_class=structlog.stdlib.BoundLogger,
)
"""Goes through the standard library's logging, which nobody has to configure for the library's sake."""


def configure(*, as_json: bool, stream: TextIO | None = None) -> None:
    """Send what the service, its library and uvicorn log to a stream, standard error if none is given."""
    last: Any = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_SHARED,
        processors=[_without_messages, structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("planner").setLevel(logging.INFO)


def where(error: BaseException) -> list[str]:
    """Return the lines of code that an error came through, outermost first, without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def failed(event: str, error: BaseException) -> None:
    """Write down an error that nobody foresaw."""
    log.error(event, error=type(error).__name__, where=where(error))


class Observed:
    """Middleware that gives each request its id, counts and times it, and answers what nobody foresaw."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        """Wrap an application."""
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Watch one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = header(scope, REQUEST_ID) or ""
        identity = given if SANE_ID.fullmatch(given) else secrets.token_hex(8)
        begun, status = time.perf_counter(), 0

        def starts(message: Message, headers: MutableHeaders) -> None:
            nonlocal status
            status = int(message["status"])
            headers[REQUEST_ID] = identity

        answer = sending(send, starts)
        with structlog.contextvars.bound_contextvars(request_id=identity), self.metrics.in_flight():
            try:
                await self.app(scope, receive, answer)
            except Exception as error:
                failed("failed", error)
                if status == 0:
                    await problem(unexpected())(scope, receive, answer)
            took = time.perf_counter() - begun
            route, method = route_of(scope), scope["method"]
            self.metrics.request(route, method, status, took)
            said: Mapping[str, Any] = scope.get("state", {}).get("said", {})
            log.info("request", method=method, route=route, status=status, ms=round(took * 1_000, 1), **said)


def route_of(scope: Scope) -> str:
    """Return the template of the route that answers a request, `unmatched` where none does.

    Of a part that is mounted it begins with the place where that is; what it does not know is that place.
    FastAPI does not name a route that is none of its own: it is the path, where that takes no parameter.
    """
    route, root = scope.get("route"), str(scope.get("root_path", ""))
    template = None if isinstance(route, Mount) else getattr(route, "path", None)
    if template is not None:
        return f"{root}{template}"
    is_plain = "endpoint" in scope and not scope.get("path_params")
    return root or (str(scope["path"]) if is_plain else OF_A_ROUTER)


def note(scope: Scope, **facts: str | None) -> None:
    """Have the line of this request say more: a plan, a code; None says nothing."""
    said = scope.setdefault("state", {}).setdefault("said", {})
    said.update({name: value for name, value in facts.items() if value is not None})


def note_error(scope: Scope, error: PlannerError) -> None:
    """Have the line of this request say which error it ended with, and of which plan."""
    plan = error.detail.get("plan")
    note(scope, code=error.code, plan=plan if isinstance(plan, str) else None)


def _without_messages(logger: Any, method: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace a traceback, whose last line is a message, by the lines of code."""
    said = dict(event)
    record = said.get("_record")
    info = said.pop("exc_info", None) or (record.exc_info if record is not None else None)
    error = info[1] if isinstance(info, tuple) else info if isinstance(info, BaseException) else None
    if error is not None:
        said.update(error=type(error).__name__, where=where(error))
    if record is not None:
        record.exc_info = record.exc_text = None
    return said
