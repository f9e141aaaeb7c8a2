"""What middleware shares: reading headers of a request, adding some to an answer."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Scope, Send


def header(scope: Scope, name: str) -> str | None:
    """Return a request's header, None where it has none of that name."""
    return Headers(scope=scope).get(name)


def sending(send: Send, start: Callable[[Message, MutableHeaders], None]) -> Send:
    """Return a `send` that shows the beginning of the answer, and its headers to change, first."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            start(message, MutableHeaders(scope=message))
        await send(message)

    return sent
