"""Stands between clients and a server, and cuts a connection: in a request, in its answer, or between them.

Where the answer to a COMMIT is lost, the client does not know the outcome of what it wrote.
"""

from __future__ import annotations

import select
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.engine import make_url

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
"""The message as psycopg sends it at the end of a transaction."""

CHUNK = 65_536

Place = Literal["in the request", "before the answer", "in the answer"]


class Relay(socketserver.ThreadingUnixStreamServer):
    """Passes on all bytes, until it is told to cut a connection."""

    daemon_threads = True

    def __init__(self, path: str, server: tuple[str, int]) -> None:
        """Listen on `path` for clients of `server`, a host (or the folder of its socket) and a port."""
        super().__init__(path, _Passing)
        self.server = server
        self.losing: bytes | None = None
        self.cutting: Place | None = None

    def cut(self, place: Place) -> None:
        """Cut the connection that asks next."""
        self.cutting = place

    def lose(self, after: bytes) -> None:
        """Lose the answer to the next COMMIT of a transaction in which a statement holds `after`."""
        self.losing = after


@contextmanager
def relay(url: str) -> Iterator[tuple[Relay, str]]:
    """Run a relay to the server of a URL; gives it with the URL through it."""
    target = conninfo_to_dict(url)
    server = (str(target["host"]), int(target.get("port") or 5432))
    with tempfile.TemporaryDirectory() as folder:
        running = Relay(str(Path(folder) / f".s.PGSQL.{server[1]}"), server)
        threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()
        try:
            through = make_url(url).set(host=None, port=server[1], query={"host": folder})
            yield running, through.render_as_string(hide_password=False)
        finally:
            running.shutdown()
            running.server_close()


class _Passing(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        with suppress(ConnectionError), _connected(*self.server.server) as upstream:
            sent = bytearray()
            while True:
                ready, _, _ = select.select([self.request, upstream], [], [])
                if upstream in ready:
                    if not (answer := upstream.recv(CHUNK)):
                        return
                    self.request.sendall(answer)
                if self.request in ready:
                    if not (asked := self.request.recv(CHUNK)):
                        return
                    if self.server.cutting is not None:
                        self._cut(asked, upstream)
                        return
                    sent += asked
                    upstream.sendall(asked)
                    if sent.endswith(COMMIT):
                        losing = self.server.losing
                        if losing is not None and losing in sent:
                            self.server.losing = None
                            upstream.recv(CHUNK)
                            return
                        sent.clear()

    def _cut(self, asked: bytes, upstream: socket.socket) -> None:
        place, self.server.cutting = self.server.cutting, None
        upstream.sendall(asked[: len(asked) // 2] if place == "in the request" else asked)
        while place == "in the answer":
            ready, _, _ = select.select([self.request, upstream], [], [])
            if upstream in ready:
                answer = upstream.recv(CHUNK)
                self.request.sendall(answer[: len(answer) // 2])
                return
            if not (asked := self.request.recv(CHUNK)):
                return
            upstream.sendall(asked)  # the rest of it


def _connected(host: str, port: int) -> socket.socket:
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.connect(f"{host}/.s.PGSQL.{port}")
    return made
