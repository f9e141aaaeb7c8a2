"""How much and how long: the operator's limits of a request, and the middleware that holds bodies to them."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planner.errors import RequestError
from planner.settings import Settings
from planner.surfaces.http.asgi import header
from planner.surfaces.http.problems import TooLarge, problem

DEADLINE = "X-Deadline-Ms"
"""The request's header that shortens its deadline."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the operator allows: bytes of a body, rows of a page, milliseconds of a request."""

    max_body_bytes: int
    max_page: int
    deadline_ms: int

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Take the limits of a configuration."""
        return cls(settings.max_body_bytes, settings.max_page, settings.deadline_ms)

    def page(self, limit: int) -> int:
        """Return the rows of a page. Raises RequestError where they are more than the operator allows."""
        if limit > self.max_page:
            raise RequestError(
                f"limit = {limit} is above the operator's max_page {self.max_page}; a request may only lower "
                "it",
                field="limit",
            )
        return limit


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a request must have its answer, on the monotonic clock, in seconds."""

    at: float

    @classmethod
    def of(cls, scope: Scope, limits: Limits) -> Deadline:
        """Read the header, which may only shorten the operator's. Raises RequestError."""
        asked = header(scope, DEADLINE)
        if asked is None:
            return cls(time.monotonic() + limits.deadline_ms / 1_000)
        if not (asked.isascii() and asked.isdigit() and 1 <= int(asked[:12]) <= limits.deadline_ms):
            raise RequestError(
                f"{DEADLINE}: write whole milliseconds, 1 to {limits.deadline_ms}; a request may only lower "
                "the operator's deadline",
                field=DEADLINE,
            )
        return cls(time.monotonic() + int(asked) / 1_000)

    def left_ms(self) -> int:
        """Return how much is left, at least a millisecond: what is late ends at its first statement."""
        return max(1, int((self.at - time.monotonic()) * 1_000))


class BodyLimit:
    """Middleware that reads no more of a body than is allowed, whether or not its length is announced."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        """Wrap an application."""
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what announces too much; let `receive` raise TooLarge where too much comes."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        too_large = TooLarge(f"the body may have {self.max_bytes} bytes at most", limit=self.max_bytes)
        announced = header(scope, "content-length")
        if announced is not None and announced.isdigit() and int(announced[:19]) > self.max_bytes:
            await problem(too_large, {"Connection": "close"})(scope, receive, send)
            return
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.max_bytes:
                raise too_large
            return message

        await self.app(scope, counted, send)
