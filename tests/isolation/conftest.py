"""Two tenants with the same content in one database, which each test leaves as it found it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

Become = Callable[[psycopg.Connection, str, UUID | str | None], AbstractContextManager[None]]

ROWS = sorted((Path(__file__).parents[1] / "migration" / "rows").glob("*.sql"))


@pytest.fixture(scope="module")
def two_tenants_url(server_url: str, template_url: str) -> Iterator[str]:
    """Give a module a migrated database with the same rows in scopes a and b."""
    name = f"planner_test_{secrets.token_hex(6)}"
    template = sql.Identifier(make_url(template_url).database or "")
    url = make_url(server_url).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), template))
    with psycopg.connect(url) as conn:
        conn.execute("SET ROLE planner_owner")
        for path in ROWS:
            conn.execute(path.read_text(encoding="utf-8"))
    yield url
    with psycopg.connect(server_url, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def rows(module_database_url: str) -> Iterator[psycopg.Connection]:
    """Connect as a superuser to the database that the tests of a module share, to count what is there."""
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def conn(two_tenants_url: str) -> Iterator[psycopg.Connection]:
    """Connect as a superuser, in a transaction that is rolled back at the end."""
    with psycopg.connect(two_tenants_url) as conn:
        conn.execute("SELECT 1")  # opens the transaction: `transaction()` in a test is a savepoint
        yield conn
        conn.rollback()


@pytest.fixture(scope="session")
def become() -> Become:
    """Return a context manager that runs as a role and, unless it is None, with a scope set."""

    @contextmanager
    def run(conn: psycopg.Connection, role: str, scope: UUID | str | None) -> Iterator[None]:
        with conn.transaction():
            conn.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
            if scope is not None:
                conn.execute(sql.SQL("SET LOCAL planner.scope_id = {}").format(sql.Literal(str(scope))))
            yield
            conn.execute("RESET ROLE")
            conn.execute("RESET planner.scope_id")

    return run
