"""Real databases for the tests: a fresh one each, copied from a template that is migrated once."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from planner.embedded import EmbeddedServer
from tests.pooler import Through, pooler

# The developer's settings are not the tests', and the variables of the tests are no settings.
_VARIABLES = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PLANNER_")}


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give a superuser's URL on the server under test: PLANNER_TEST_DATABASE_URL, else an embedded one."""
    if given := _VARIABLES.get("PLANNER_TEST_DATABASE_URL"):
        yield given
        return
    server = EmbeddedServer(tmp_path_factory.mktemp("server"), durable=False, idle_seconds=5)
    with server:
        yield server.url
    server.stop()


@pytest.fixture(scope="session")
def through(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Through]:
    """Give the way to a database that tests ask in: PLANNER_TEST_POOLER (PgBouncer), else none between."""
    if not (program := _VARIABLES.get("PLANNER_TEST_POOLER")):
        yield lambda url: url
        return
    with pooler(program, server_url, tmp_path_factory.mktemp("pooler")) as through:
        yield through


@pytest.fixture(scope="session")
def template_url(server_url: str) -> Iterator[str]:
    """Give a migrated database that nobody is connected to."""
    from planner.store.upgrade import migrate

    with _database(server_url) as url:
        migrate(url)
        yield url


@pytest.fixture
def database_url(server_url: str, template_url: str, through: Through) -> Iterator[str]:
    """Give a fresh migrated database."""
    with _database(server_url, template=make_url(template_url).database) as url:
        yield through(url)


@pytest.fixture(scope="module")
def module_database_url(server_url: str, template_url: str, through: Through) -> Iterator[str]:
    """Give a fresh migrated database that the tests of a module share."""
    with _database(server_url, template=make_url(template_url).database) as url:
        yield through(url)


@pytest.fixture(scope="session")
def shared_database_url(server_url: str, template_url: str, through: Through) -> Iterator[str]:
    """Give one migrated database for all tests that keep to a scope of their own."""
    with _database(server_url, template=make_url(template_url).database) as url:
        yield through(url)


@pytest.fixture(scope="session")
def viewer_database_url(server_url: str, template_url: str, through: Through) -> Iterator[str]:
    """Give the database that the tests in a browser share: its scopes are of another model than others'."""
    with _database(server_url, template=make_url(template_url).database) as url:
        yield through(url)


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """Give a fresh database without a schema."""
    with _database(server_url) as url:
        yield url


@pytest.fixture
def app_login_url(database_url: str) -> Iterator[str]:
    """Give the fresh migrated database as an application logs in."""
    with _app_login(database_url) as url:
        yield url


@pytest.fixture(scope="module")
def module_app_login_url(module_database_url: str) -> Iterator[str]:
    """Give the database that the tests of a module share as an application logs in."""
    with _app_login(module_database_url) as url:
        yield url


@pytest.fixture(scope="session")
def shared_corpus() -> Callable[[str], Path]:
    """Return the folder of a shared corpus; the test is skipped where the corpora are absent."""
    return _corpus


def _corpus(name: str) -> Path:
    given = _VARIABLES.get("PLANNER_CORPORA")
    beside = (parent / "shared" / "data" for parent in Path(__file__).resolve().parents)
    for root in [Path(given)] if given else beside:
        if (root / name).is_dir():
            return root / name
    pytest.skip(f"no shared corpus {name}: set PLANNER_CORPORA to the folder that holds it")


@contextmanager
def _app_login(database_url: str) -> Iterator[str]:
    """Make a login that is no superuser, and a member of the roles.

    NOINHERIT: it has a role's privileges only where it says SET ROLE.
    """
    name, password = f"planner_test_{secrets.token_hex(4)}", secrets.token_hex(8)
    login = sql.Identifier(name)
    with psycopg.connect(database_url, autocommit=True) as connection:
        create = sql.SQL("CREATE ROLE {} LOGIN NOINHERIT PASSWORD {}")
        connection.execute(create.format(login, sql.Literal(password)))
        connection.execute(sql.SQL("GRANT planner_reader, planner_writer, planner_owner TO {}").format(login))
    url = make_url(database_url).set(username=name, password=password)
    yield url.render_as_string(hide_password=False)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(login))
        connection.execute(sql.SQL("DROP ROLE {}").format(login))


@contextmanager
def _database(server_url: str, template: str | None = None) -> Iterator[str]:
    """Make a database of a random name, gone at the end whoever is still connected.

    Where Citus is loaded, an empty database gets its extension, and its daemon is sent out of the template,
    which is copied whole: on one node the shards are tables of the same database.
    """
    name = f"planner_test_{secrets.token_hex(6)}"
    url = make_url(server_url).set(database=name).render_as_string(hide_password=False)
    copied = sql.SQL("TEMPLATE {}").format(sql.Identifier(template or "template0"))
    with psycopg.connect(server_url, autocommit=True) as connection:
        (libraries,) = connection.execute("SHOW shared_preload_libraries").fetchone() or ("",)
        end_sessions = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"
        connection.execute(end_sessions, [template])
        connection.execute(sql.SQL("CREATE DATABASE {} {}").format(sql.Identifier(name), copied))
    try:
        if "citus" in libraries and template is None:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION citus")
        yield url
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
