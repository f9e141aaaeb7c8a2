"""A database that is there for as long as something is tried in it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors as pg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from planner.errors import StoreError
from planner.store.connect import run, translated
from planner.store.queries import compose
from planner.store.upgrade import migrate

PREFIX = "planner_scratch_"


@contextmanager
def scratch_database(url: str) -> Iterator[str]:
    """Make a migrated database of a random name on the server of `url`, give its URL, and drop it at the end.

    Raises StoreUnavailable, StoreError where the login may not create a database, and what `migrate` raises.
    """
    name = PREFIX + secrets.token_hex(6)
    _on_server(url, name, "create_scratch")
    try:
        _on_server(url, name, "relax_scratch")
        made = make_conninfo(url, dbname=name)
        migrate(made)
        yield made
    finally:
        _on_server(url, name, "drop_scratch")


def _on_server(url: str, name: str, statement: str) -> None:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as conn:
            run(conn, compose(statement, name=sql.Identifier(name)))
    except pg.InsufficientPrivilege as error:
        raise StoreError(
            f"this login may not create a scratch database ({error.diag.message_primary}); an administrator "
            "allows it with ALTER ROLE … CREATEDB, or name another server",
            sqlstate=error.sqlstate,
        ) from error
    except psycopg.Error as error:
        raise translated(error) from error
