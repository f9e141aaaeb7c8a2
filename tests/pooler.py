"""PgBouncer in transaction mode in front of a server that trusts its clients, as the tests' way to it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy.engine import URL, make_url

from planner.embedded.identity import choose

Through = Callable[[str], str]

PORT = 6432  # of a Unix socket: only a part of its name
PATIENCE_SECONDS = 10.0

# A freed server connection is the next one given, so that transactions of different clients meet on it. There
# are enough for the tests that hold one open to make others wait for its locks.
CONFIGURATION = """
[databases]
* = {server} auth_user={superuser}
[pgbouncer]
pool_mode = transaction
default_pool_size = 12
max_client_conn = 500
auth_type = trust
auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = $1
admin_users = {superuser}
listen_port = {port}
unix_socket_dir = {folder}
"""


@contextmanager
def pooler(program: str, server_url: str, folder: Path) -> Iterator[Through]:
    """Run `program` (PgBouncer) in `folder`; gives a function from a URL on the server to one through it."""
    server, identity = make_url(server_url), choose(folder)
    where = {"host": _host(server), "port": str(server.port or 5432)}
    configuration = folder / "pgbouncer.ini"
    configuration.write_text(
        CONFIGURATION.format(
            server=" ".join(f"{name}={value}" for name, value in where.items()),
            superuser=server.username,
            port=PORT,
            folder=folder,
        ),
        encoding="utf-8",
    )
    with (folder / "pgbouncer.log").open("wb") as log:
        command = [*identity.prefix, program, str(configuration)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait(process, _through(server_url, folder), folder / "pgbouncer.log")
        yield lambda url: _through(url, folder)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _through(url: str, folder: Path) -> str:
    target = make_url(url).set(host=None, port=PORT, query={"host": str(folder)})
    return target.render_as_string(hide_password=False)


def _host(server: URL) -> str:
    named = server.query.get("host") or server.host
    if not isinstance(named, str):
        raise ValueError(f"a pooler needs one host to connect to, not {named!r}")
    return named


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PgBouncer did not start: {log.read_text()}") from error
            time.sleep(0.05)
