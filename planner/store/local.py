"""What a transaction sets for itself alone, with `SET LOCAL`; its timeout is at most what its call leaves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import sql

from planner.store.call import current, sending

Connection = psycopg.Connection[Any]
Values = Mapping[str, str | int]

NARROWED = 0.9
"""The timeout is set anew before a statement whose call leaves less than this share of it."""

_TIMEOUTS: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()
"""The timeouts in milliseconds that transactions have for their calls."""


def set_local(conn: Connection, values: Values, *, before: bytes = b"") -> None:
    """Set values for the rest of the transaction, after a statement of ours; names are never a caller's.

    Raises CallCancelled, DeadlineExceeded.
    """
    call, statements = current(), before + _assignments(tuple(values.items()))
    with sending(conn):
        if call is not None and "statement_timeout" in values:
            asked = int(values["statement_timeout"])
            allowed = _TIMEOUTS[conn] = call.within(asked)
            statements += b"" if allowed == asked else b"; " + _timeout(allowed)
        if statements:
            conn.execute(statements, prepare=False)


def narrow(conn: Connection) -> None:
    """Set the timeout anew where the statements so far have used much of what the call left for each."""
    call, allowed = current(), _TIMEOUTS.get(conn)
    if call is not None and allowed is not None and call.within(allowed) < NARROWED * allowed:
        _TIMEOUTS[conn] = call.within(allowed)
        conn.execute(_timeout(_TIMEOUTS[conn]), prepare=False)


def forget(conn: Connection) -> None:
    """Know nothing of a connection's transaction any more: it has none."""
    _TIMEOUTS.pop(conn, None)


def _timeout(ms: int) -> bytes:
    """Return the statement for one timeout; not kept, since hardly two calls leave the same."""
    return sql.SQL("SET LOCAL statement_timeout = {}").format(sql.Literal(ms)).as_bytes(None)


@lru_cache(maxsize=1_024)
def _assignments(values: tuple[tuple[str, str | int], ...]) -> bytes:
    """Return `SET LOCAL` statements with client-quoted literals; the dots of a name separate identifiers.

    Kept, since the values of a scope are the same for each of its transactions.
    """
    parts = []
    for name, value in values:
        schemas = [sql.Identifier(part.strip()) for part in str(value).split(",")]
        quoted = sql.SQL(", ").join(schemas) if name == "search_path" else sql.Literal(value)
        parts.append(sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(*name.split(".")), quoted))
    return sql.SQL("; ").join(parts).as_bytes(None)
