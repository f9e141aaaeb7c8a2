"""The service for tests: in this process without a socket, or on a port of its own in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

from planner import Planner
from planner.surfaces.http.app import create_app
from planner.surfaces.http.server import configured, listening


@contextmanager
def client(planner: Planner, *, tokens: bool = False, **headers: str) -> Iterator[TestClient]:
    """Give a client of a planner's application, which calls it directly."""
    app = create_app(planner, tokens=tokens)
    with TestClient(app, base_url="http://localhost", headers=headers) as opened:
        yield opened


@contextmanager
def listener(app: FastAPI, deadline_ms: int = 30_000) -> Iterator[str]:
    """Serve an application as `planner serve` does, in a thread; give its URL."""
    with listening("127.0.0.1", 0) as bound:
        server = uvicorn.Server(configured(app, deadline_ms))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                thread.join(0.01)
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def routes_of(app: FastAPI) -> set[tuple[str, str]]:
    """Return the routes of an application that are described, as method and template."""
    return {
        (method.upper(), path) for path, operations in app.openapi()["paths"].items() for method in operations
    }


def without_times(said: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what is measured anew each time."""
    return {name: value for name, value in said.items() if name != "timings_ms"}


def free_port() -> int:
    """Return a port that nobody listens on at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
