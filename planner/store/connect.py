"""The one door to the database: a pool, and a function that opens a scoped transaction.

Every statement of the planner runs inside `Store.scoped` (a tenant's) or `Store.maintenance` (the owner's).
Both drop to a role of the planner, so that row security holds also under a superuser's URL.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, LiteralString, cast
from uuid import UUID
from weakref import WeakSet

import psycopg
from psycopg import errors as pg
from psycopg import sql
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from planner import errors
from planner.store.arrays import BINARY_ARRAYS, array_literal
from planner.store.call import CLOCKS_SECONDS, current, pause, sending
from planner.store.local import forget, narrow, set_local
from planner.store.queries import query
from planner.store.resources import head_revision

Connection = psycopg.Connection[TupleRow]
Pool = ConnectionPool[Connection]
Role = Literal["reader", "writer"]

POOL_WAIT_SECONDS = 30.0

LOCK_POLL_SECONDS = 0.1

UPKEEP_KEY = -1731237754944425953
"""First 8 bytes of BLAKE3("planner/upkeep"), as a signed big-endian integer."""

UNKNOWN = "unknown"
"""The `outcome` of a transaction, in the detail of the error, where the answer to its COMMIT was lost."""

_LEARNED: WeakSet[Connection] = WeakSet()
"""The connections that can send arrays in binary."""

_SNAPSHOT = b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "


@dataclass(frozen=True, slots=True)
class Server:
    """What is learned about the server once, when the store is first used."""

    server_version: str
    vector_version: str
    vector_schema: str


class Store:
    """A connection pool with the scoped transactions that are the only way through it. Thread-safe."""

    def __init__(
        self,
        pool: Pool,
        *,
        pool_wait_ms: int = 2_000,
        statement_timeout_ms: int = 30_000,
        owns_pool: bool = False,
    ) -> None:
        """Wrap a pool; `owns_pool` says whether `close` closes it.

        A call waits at most `pool_wait_ms` for a connection; outside of one, the wait is the pool's own.
        """
        self.pool = pool
        self.pool_wait_ms = pool_wait_ms
        self.statement_timeout_ms = statement_timeout_ms
        self._owns_pool = owns_pool
        self._leases = set[object]()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        pool_size: int = 8,
        pool_wait_ms: int = 2_000,
        statement_timeout_ms: int = 30_000,
    ) -> Store:
        """Open a pool on `url`. Raises StoreUnavailable, SchemaBehind, SchemaAhead, MissingRoles."""
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=10):
                pass  # a wrong URL is named at once; the pool would only time out
            pool: Pool = ConnectionPool(
                url,
                min_size=0,
                max_size=pool_size,
                timeout=POOL_WAIT_SECONDS,
                kwargs={"autocommit": True, "prepare_threshold": None, "application_name": "planner"},
                open=True,
            )
        except psycopg.Error as error:
            raise translated(error) from error
        store = cls(
            pool, pool_wait_ms=pool_wait_ms, statement_timeout_ms=statement_timeout_ms, owns_pool=True
        )
        try:
            _ = store.server
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the pool, where this store opened it."""
        if self._owns_pool:
            self.pool.close()

    @cached_property
    def server(self) -> Server:
        """The server's versions, checked once: schema revision, pgvector, roles of this login."""
        with self._connection() as conn:
            row = run(conn, "handshake").fetchone()
            if row is None or not row[3]:
                raise errors.SchemaBehind("the database has no planner schema; run `planner migrate`")
            server_version, vector_version, vector_schema, _, roles = row
            if not roles:
                raise errors.MissingRoles(
                    "this login may not SET ROLE to planner_reader, planner_writer and planner_owner; "
                    "run `planner migrate` as an administrator, or grant it these roles"
                )
            _check_revision(conn)
            return Server(server_version, vector_version, vector_schema)

    def check_schema(self) -> None:
        """Look again whether the schema is this version's. Raises SchemaBehind, SchemaAhead, StoreError."""
        with self._connection() as conn:
            _check_revision(conn)

    @contextmanager
    def scoped(
        self,
        scope_id: UUID,
        role: Role,
        *,
        snapshot: bool = False,
        settings: Mapping[str, str | int] | None = None,
    ) -> Iterator[Connection]:
        """Open a transaction that sees one scope, as `planner_reader` or `planner_writer`.

        `snapshot` makes it repeatable-read and read-only; `settings` are further `SET LOCAL` values. Custom
        plans are forced, so that the scope is a constant to the planner and its partial index is found.
        """
        with self._transaction(f"planner_{role}", scope_id, snapshot, settings or {}) as conn:
            yield conn

    @contextmanager
    def maintenance(self, settings: Mapping[str, str | int] | None = None) -> Iterator[Connection]:
        """Open a transaction as `planner_owner`, which sees every scope: for listing and upkeep only."""
        with self._transaction("planner_owner", None, False, settings or {}) as conn:
            yield conn

    @contextmanager
    def upkeep(self, *, alone: bool = True) -> Iterator[Connection]:
        """Open a session as `planner_owner` outside a transaction, for what PostgreSQL runs only there.

        What builds, drops or rewrites is done `alone`: two of a kind wait for each other's snapshots, and one
        would be broken off. It waits as long as another of the same database takes.
        """
        with self._connection() as conn:
            was_autocommit, conn.autocommit = conn.autocommit, True
            try:
                conn.execute("SET ROLE planner_owner")
                set_session = sql.SQL("SET search_path = planner, {}")
                conn.execute(set_session.format(sql.Identifier(self.server.vector_schema)))
                while alone and not lock_taken(conn, UPKEEP_KEY):
                    pause(LOCK_POLL_SECONDS)
                yield conn
            finally:
                if not conn.closed:
                    if alone:
                        conn.execute(query("release_lock"), {"key": UPKEEP_KEY}, prepare=False)
                    conn.execute("RESET ROLE")
                    conn.execute("RESET search_path")
                    conn.autocommit = was_autocommit

    @contextmanager
    def _transaction(
        self, role: str, scope_id: UUID | None, snapshot: bool, settings: Mapping[str, str | int]
    ) -> Iterator[Connection]:
        local: dict[str, str | int] = {
            "role": role,
            "search_path": f"planner, {self.server.vector_schema}",
            "statement_timeout": self.statement_timeout_ms,
            "plan_cache_mode": "force_custom_plan",
            "jit": "off",
            "timezone": "UTC",
            **settings,
        }
        if scope_id is not None:
            local["planner.scope_id"] = str(scope_id)
        is_ending = False
        try:
            with self._connection() as conn, conn.transaction():
                set_local(conn, local, before=_SNAPSHOT if snapshot else b"")
                yield conn
                is_ending = not snapshot
        except errors.StoreUnavailable as error:
            if not is_ending:
                raise
            said = f"{error}; whether the transaction was committed is not known"
            raise errors.StoreUnavailable(said, **error.detail, outcome=UNKNOWN) from error.__cause__

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        call, wait = current(), None
        if call is not None:
            call.check()
            wait = min(self.pool_wait_ms / 1_000, call.left)
        lease = object()
        try:
            with self.pool.connection(wait) as conn:
                self._leases.add(lease)
                forget(conn)
                yield conn
        except psycopg.Error as error:
            if isinstance(error, PoolTimeout) and len(self._leases) >= self.pool.max_size:
                raise self.busy() from error  # otherwise it is the server that gives no connection
            ended = call.ended(CLOCKS_SECONDS) if call and isinstance(error, pg.QueryCanceled) else None
            raise ended or translated(error) from error
        finally:
            self._leases.discard(lease)

    def busy(self) -> errors.StoreBusy:
        """Return the error that says that every connection was in use for too long."""
        return errors.StoreBusy(
            f"all {self.pool.max_size} database connections are in use; try again, or raise pool_size",
            retry_after=math.ceil(self.pool_wait_ms / 1_000),
        )


def run(
    conn: Connection,
    name_or_query: LiteralString | sql.Composed,
    params: Mapping[str, Any] | None = None,
) -> psycopg.Cursor[TupleRow]:
    """Execute a named or composed statement; lists go as array literals, results come in binary."""
    sent = {k: array_literal(v) if isinstance(v, list) else v for k, v in (params or {}).items()}
    if any(type(value) in BINARY_ARRAYS for value in sent.values()):
        _can_send_arrays(conn)
    cursor = conn.cursor(binary=True, row_factory=tuple_row)  # a caller's pool may have rows of another sort
    with sending(conn):
        narrow(conn)
        return cursor.execute(_statement(name_or_query), sent, prepare=False)


def streamed(
    conn: Connection, name_or_query: LiteralString | sql.Composed, params: Mapping[str, Any]
) -> Iterator[TupleRow]:
    """Yield the rows of a named or composed statement as they come, in binary; none of them is kept."""
    with sending(conn):
        narrow(conn)
        cursor = conn.cursor(binary=True, row_factory=tuple_row)
        yield from cursor.stream(_statement(name_or_query), params)


def _statement(name_or_query: LiteralString | sql.Composed) -> sql.SQL | sql.Composed:
    return query(name_or_query) if isinstance(name_or_query, str) else name_or_query


def _can_send_arrays(conn: Connection) -> None:
    """Let a connection send arrays in binary; it learns that once, since it takes longer than to send one."""
    if conn not in _LEARNED:
        for kind, dumper in BINARY_ARRAYS.items():
            conn.adapters.register_dumper(kind, dumper)
        _LEARNED.add(conn)


def lock_taken(conn: Connection, key: int) -> bool:
    """Try to take a lock of the database for this session; say whether it is taken now."""
    row = run(conn, "take_lock", {"key": key}).fetchone()
    return row is not None and bool(row[0])


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Turn rows into `width` lists, the shape that `unnest` takes."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def by_name(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Turn rows into the parameters of a statement that takes each column by its name."""
    return dict(zip(names, columns(rows, len(names)), strict=True))


def translated(error: psycopg.Error) -> errors.PlannerError:
    """Turn a psycopg error into one of ours, by SQLSTATE; the message never holds a parameter's value."""
    said = (error.diag.message_primary or str(error)).strip().split("\n")[0]
    if isinstance(error, pg.QueryCanceled):
        return errors.StoreTimeout(f"a statement was cancelled: {said}", sqlstate=error.sqlstate)
    if isinstance(error, (pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidSchemaName, pg.UndefinedFunction)):
        return errors.SchemaBehind(f"{said}; run `planner migrate`", sqlstate=error.sqlstate)
    if isinstance(error, (PoolTimeout, PoolClosed)):
        return errors.StoreUnavailable(f"no database connection was free: {said}")
    if isinstance(error, psycopg.OperationalError) and (
        error.sqlstate is None or error.sqlstate[:2] in ("08", "57", "28", "3D", "53")
    ):
        return errors.StoreUnavailable(f"the database cannot be reached: {said}", sqlstate=error.sqlstate)
    return errors.StoreError(f"the database refused a statement: {said}", sqlstate=error.sqlstate)


def _check_revision(conn: Connection) -> None:
    try:
        with conn.transaction():
            # A login that does not inherit may read only as a role.
            set_local(conn, {"role": "planner_reader"})
            row = run(conn, "schema_revision").fetchone()
    except pg.InsufficientPrivilege as error:
        raise errors.SchemaBehind(
            "planner_reader may not read the schema: a migration was cut off before its grants; "
            "run `planner migrate`"
        ) from error
    found, head = cast("str | None", row[0] if row else None), head_revision()
    if found == head:
        return
    if found is not None and found > head:
        raise errors.SchemaAhead(
            f"the schema is at {found}, this version knows up to {head}", found=found, head=head
        )
    raise errors.SchemaBehind(
        f"the schema is at {found or 'no revision'}, this version needs {head}; run `planner migrate`",
        found=found,
        head=head,
    )
