"""Further databases, their schema as text, and rows in every table."""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from planner.embedded import EmbeddedServer
from planner.embedded.binaries import environment, program
from planner.store import upgrade
from planner.store.requirements import Facts
from planner.store.resources import head_revision

Fill = Callable[..., None]
ROWS = sorted((Path(__file__).parent / "rows").glob("*.sql"))

NOT_THE_SCHEMA = re.compile(
    r"\\restrict|\\unrestrict"  # carry a random word
    r"|-- Dumped from database version"  # two servers under test may be of two versions
    r"|ALTER TABLE ONLY \S+ ALTER COLUMN \S+ SET \(pg_attver=\d+\);"  # Debian's 17.12 numbers each new column
)


@pytest.fixture(scope="session")
def fill() -> Fill:
    """Return a function that puts rows of two scopes into every table that a database has at a revision."""

    def run(url: str, revision: str = head_revision()) -> None:
        with psycopg.connect(url) as conn:
            conn.execute("SET ROLE planner_owner")
            for path in ROWS:
                if path.stem <= revision:
                    conn.execute(path.read_text(encoding="utf-8"))

    return run


@pytest.fixture
def released_database(empty_database_url: str) -> Callable[[str], str]:
    """Return a function that brings an empty database to a released revision and gives its URL."""

    def bring(revision: str) -> str:
        with upgrade._connection(empty_database_url) as conn:
            upgrade._lay_ground(conn, Facts.of(conn), roles=True)
            upgrade._run_migrations(conn, revision)
        return empty_database_url

    return bring


@pytest.fixture(scope="session")
def schema_of() -> Callable[[str], str]:
    """Return a function that gives a database's schema as `pg_dump -s` writes it."""

    def dump(url: str) -> str:
        done = subprocess.run(
            [str(program("pg_dump")), "--schema-only", "--dbname", url],
            capture_output=True,
            text=True,
            check=True,
            env=environment(),
        )
        return "\n".join(line for line in done.stdout.splitlines() if not NOT_THE_SCHEMA.match(line))

    return dump


@pytest.fixture
def another_database(server_url: str) -> Iterator[Callable[[], str]]:
    """Return a function that makes a further empty database on the server under test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(_Database(server_url)).url


@pytest.fixture(scope="module")
def roleless_server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server that has never seen a migration: roles belong to the whole cluster."""
    server = EmbeddedServer(tmp_path_factory.mktemp("roleless"), durable=False, idle_seconds=5)
    with server:
        yield server.url
    server.stop()


@pytest.fixture
def roleless_database(roleless_server_url: str) -> Iterator[Callable[[], str]]:
    """Return a function that makes a database on that server; at the end they and the roles are gone."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(_Database(roleless_server_url)).url
    with psycopg.connect(roleless_server_url, autocommit=True) as conn:
        rows = conn.execute("SELECT rolname FROM pg_roles WHERE rolname ~ '^(planner_|login_)'").fetchall()
        for (name,) in rows:
            conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


class _Database:
    """A database of a random name, dropped at the end."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._name = sql.Identifier(name := f"planner_test_{secrets.token_hex(6)}")
        self.url = make_url(server_url).set(database=name).render_as_string(hide_password=False)

    def __enter__(self) -> _Database:
        with psycopg.connect(self._server_url, autocommit=True) as conn:
            conn.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(self._name))
        return self

    def __exit__(self, *_: object) -> None:
        with psycopg.connect(self._server_url, autocommit=True) as conn:
            conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(self._name))
