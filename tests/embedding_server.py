"""An OpenAI-compatible embeddings endpoint of the tests' own: a real server that answers as it is told."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What the server says once; `hang` says nothing, `cut` half of it."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False

    @property
    def data(self) -> bytes:
        """The body's bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Endpoint:
    """What was asked, in order, with its headers; and what is answered: `script` first, then `vectors`."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    script: list[Answer] = field(default_factory=list)
    vectors: Callable[[list[str]], list[Any]] = lambda texts: [[float(len(text)), 1.0] for text in texts]
    ended: threading.Event = field(default_factory=threading.Event)

    def answer(self, asked: dict[str, Any]) -> Answer:
        """Return the next answer."""
        return self.script.pop(0) if self.script else Answer(body=data(self.vectors(asked["input"])))


def data(vectors: list[Any]) -> dict[str, Any]:
    """Return vectors in the form of an answer."""
    return {"data": [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]}


class Server(ThreadingHTTPServer):
    """A server that does not mind a client that hangs up."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that the client ended."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving() -> Iterator[Endpoint]:
    """Serve on a free local port in a thread."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.asked.append({"path": self.path, **asked})
            endpoint.headers.append(dict(self.headers))
            answer = endpoint.answer(asked)
            if answer.hang:
                endpoint.ended.wait()
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.data)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.data[: len(answer.data) // 2] if answer.cut else answer.data)
            self.close_connection = answer.cut

        def log_message(self, *_: object) -> None:
            """Keep the tests' output clean."""

    server = Server(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
