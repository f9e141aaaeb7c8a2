"""The process that serves: one socket, one application, until it is told to stop."""

from __future__ import annotations

import math
import socket
import sys
from collections.abc import Callable

import uvicorn

from planner.client import Planner
from planner.errors import PlannerError
from planner.surfaces.http import logs
from planner.surfaces.http.app import create_app
from planner.surfaces.http.parts import installed
from planner.surfaces.http.security import is_loopback

SWITCH_SECONDS = 0.0005
"""How long a thread that plans may keep the others waiting, the event loop among them (docs/http.md)."""


def run(
    planner: Planner,
    host: str,
    port: int,
    *,
    tokens: bool,
    as_json: bool,
    ready: Callable[[str], None] | None = None,
) -> bool:
    """Serve until SIGTERM or SIGINT, then finish what runs; return whether it could begin.

    `ready` is told the URL once it is listened on. Tokens are asked for on every address but the loopback
    interface's, whatever `tokens` says. Raises PlannerError where the address cannot be listened on.
    """
    logs.configure(as_json=as_json)
    sys.setswitchinterval(SWITCH_SECONDS)
    with listening(host, port) as listener:
        address, bound = listener.getsockname()[:2]
        asks = tokens or not is_loopback(address)
        app = create_app(planner, tokens=asks, parts=installed())
        url = f"http://[{address}]:{bound}" if ":" in address else f"http://{address}:{bound}"
        reach = (
            "every request needs a token"
            if asks
            else "no tokens: whoever is on this machine may do everything"
        )
        logs.log.info("serving", url=url, tokens=asks, reach=reach)
        if ready is not None:
            ready(url)
        server = uvicorn.Server(configured(app, planner.engine.settings.deadline_ms))
        try:
            server.run(sockets=[listener])
        finally:
            logs.log.info("stopped")
    return server.started


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address. Raises PlannerError.

    What it accepts sends at once: asyncio would leave Nagle's algorithm on, since it does not see that this
    is TCP, and each answer would wait 40 ms for its second packet.
    """
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.create_server(address[:2], family=family)
    except OSError as error:
        raise PlannerError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def configured(app: object, deadline_ms: int) -> uvicorn.Config:
    """Return how uvicorn serves: it logs no request, and waits for what runs as long as that may take."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(deadline_ms / 1_000) + 1,
    )
