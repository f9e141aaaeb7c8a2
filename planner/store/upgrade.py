"""Bring a database to this version's schema: ground, migrations, objects; or say what is to be done.

`migrate` does it, `script` prints the same for a DBA, `check` reads how far a database is. The ground (roles,
extension, schema) and the objects are SQL files that are run again every time; alembic moves what holds data.
All is done and owned by planner_owner, under an advisory lock.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from psycopg import errors as pg

from planner.errors import MigrationBusy, MissingRoles, SchemaAhead, SchemaBehind, StoreError
from planner.store import objects
from planner.store.connect import LOCK_POLL_SECONDS, Connection, lock_taken, run, translated
from planner.store.requirements import Facts, require_roles, require_server
from planner.store.resources import head_revision, migrations_dir, revisions

LOCK_KEY = -5245819585731238978
"""First 8 bytes of BLAKE3("planner/migrate"), as a signed big-endian integer."""

APPLICATION = "planner migrate"

# Alembic hands its context to migrations through a module: one at a time in a process.
_alembic_context = threading.Lock()


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """How far a database is. `current` is None without a schema, `objects_built` without a seal."""

    current: str | None
    head: str
    pending: tuple[str, ...]
    objects_built: str | None
    objects_wanted: str

    @property
    def drifted(self) -> bool:
        """Whether views, functions, policies and grants were built by another version."""
        return self.objects_built != self.objects_wanted

    @property
    def up_to_date(self) -> bool:
        """Whether `planner migrate` would change nothing."""
        return self.current == self.head and not self.drifted

    def require_known(self) -> None:
        """Raise SchemaAhead where the database has a revision that this version does not know."""
        if self.current is not None and self.current not in revisions():
            raise SchemaAhead(
                f"the schema is at revision {self.current}, this version knows up to {self.head}; "
                "upgrade evidence-planner",
                current=self.current,
                head=self.head,
            )

    def require_current(self) -> None:
        """Raise SchemaAhead or SchemaBehind unless the database has this version's revision and objects."""
        self.require_known()
        if not self.up_to_date:
            behind = ", ".join(self.pending) or "views, functions, policies and grants"
            raise SchemaBehind(
                f"the schema is at {self.current or 'no revision'} and lacks {behind}; run `planner migrate`",
                current=self.current,
                head=self.head,
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the status as JSON data."""
        return {**asdict(self), "pending": list(self.pending), "up_to_date": self.up_to_date}


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What `migrate` did: the revision before and after, and the migrations that were applied."""

    before: str | None
    after: str
    applied: tuple[str, ...]
    objects: str

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {**asdict(self), "applied": list(self.applied)}


def migrate(url: str, *, roles: bool = True, patience: float = 60.0) -> MigrationReport:
    """Migrate the database at `url` to this version and rebuild its objects; a second call changes nothing.

    `roles=False` creates and grants no role; the four must be there. `patience` is how many seconds to wait
    for another migration of the same database. Raises UnsupportedServer, MissingRoles, SchemaAhead,
    MigrationBusy, StoreUnavailable, StoreError; a migration that fails leaves the ones before it applied.
    """
    with _connection(url) as conn:
        facts = Facts.of(conn)
        require_server(facts)
        with _alone(conn, patience):
            before = status(conn)
            before.require_known()
            _lay_ground(conn, facts, roles=roles)
            _run_migrations(conn)
            fingerprint = _rebuild_objects(conn)
    return MigrationReport(before.current, before.head, before.pending, fingerprint)


def script(*, roles: bool = True) -> str:
    """Return all that `migrate` does to an empty database, as one script for `psql -1`.

    With `roles=False` the roles' statements stand in it as a comment.
    """
    out = ["-- evidence-planner: run with psql -1 -v ON_ERROR_STOP=1 -f FILE, on an empty database\n"]
    if not roles:
        out.append("-- First, as an administrator, for your login (before PostgreSQL 16 without WITH …):\n")
        out.extend(f"--   {line}\n" for line in objects.dba_statements("<login>"))
    files = (*(objects.role_files() if roles else ()), *objects.ground_files())
    out.extend(path.read_text(encoding="utf-8") for path in files)
    migrations = io.StringIO()
    with _alembic_context:
        command.upgrade(_alembic(output_buffer=migrations), "head", sql=True)
    out.append(migrations.getvalue())
    out.extend(path.read_text(encoding="utf-8") for path in objects.object_files())
    out.append(objects.seal(objects.objects_hash()).as_string(None) + ";\n")
    out.append("RESET ROLE;\n")
    return "\n".join(out)


def check(url: str) -> MigrationStatus:
    """Return how far the database at `url` is. Raises MissingRoles, StoreUnavailable; changes nothing."""
    with _connection(url) as conn:
        return status(conn)


def status(conn: Connection) -> MigrationStatus:
    """Return how far the connection's database is, read as whichever of the planner's roles the login has."""
    head = head_revision()
    with conn.transaction(force_rollback=True):
        schema_exists, table_exists, comment = run(conn, "schema_facts").fetchone() or (False, False, None)
        current = _revision(conn) if table_exists else None
    known = revisions()
    pending = known[known.index(current) + 1 :] if current in known else () if current else known
    built = objects.read_seal(comment) if schema_exists else None
    return MigrationStatus(current, head, pending, built, objects.objects_hash())


def _revision(conn: Connection) -> str | None:
    member_of = {name: member for name, member, *_ in run(conn, "role_facts", {"roles": list(objects.ROLES)})}
    # The owner first: where a migration was cut off before its grants, the others may not read yet.
    held = [role for role in objects.ROLES if member_of.get(role)]
    if not held:
        raise MissingRoles(
            "this login is not a member of the planner's roles, so it cannot read the schema's revision; "
            f"an administrator lets it with: {objects.dba_statements(conn.info.user, missing=())[-1]}"
        )
    conn.execute(psycopg.sql.SQL("SET LOCAL ROLE {}").format(psycopg.sql.Identifier(held[0])))
    row = run(conn, "schema_revision").fetchone()
    return str(row[0]) if row else None


@contextmanager
def _connection(url: str) -> Iterator[Connection]:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10, application_name=APPLICATION) as conn:
            yield conn
    except psycopg.Error as error:
        raise translated(error) from error
    except sa.exc.DBAPIError as error:
        cause = error.orig
        raise translated(cause) if isinstance(cause, psycopg.Error) else StoreError(str(cause)) from error


@contextmanager
def _alone(conn: Connection, patience: float) -> Iterator[None]:
    """Hold the database's migration lock, for which another migration is given `patience` seconds to end."""
    deadline = time.monotonic() + patience
    while not lock_taken(conn, LOCK_KEY):
        if time.monotonic() >= deadline:
            raise MigrationBusy(
                f"another migration of database {conn.info.dbname} has been running for {patience:g} s; "
                "wait for it to end and run `planner migrate` again"
            )
        time.sleep(LOCK_POLL_SECONDS)
    try:
        yield
    finally:
        if not conn.closed:
            conn.rollback()
            run(conn, "release_lock", {"key": LOCK_KEY})


def _lay_ground(conn: Connection, facts: Facts, *, roles: bool) -> None:
    """Make roles, extension and schema, and turn the session into planner_owner's."""
    if roles:
        try:
            with conn.transaction():
                for path in objects.role_files():
                    conn.execute(objects.statements(path))
        except pg.InsufficientPrivilege as error:
            require_roles(conn, facts)
            raise translated(error) from error
    require_roles(conn, facts)
    try:
        with conn.transaction():
            for path in objects.ground_files():
                conn.execute(objects.statements(path))
    except pg.InsufficientPrivilege as error:
        raise facts.ground_refused(error) from error


def _run_migrations(conn: Connection, revision: str = "head") -> None:
    """Run alembic on this very connection: the session that holds the lock and the owner's role."""
    conn.autocommit = False
    try:
        engine = sa.create_engine("postgresql+psycopg://", creator=lambda: conn, poolclass=sa.pool.StaticPool)
        with engine.connect() as connection, _alembic_context:
            command.upgrade(_alembic(connection=connection), revision)
    finally:
        if not conn.closed:
            conn.rollback()
            conn.autocommit = True


def _rebuild_objects(conn: Connection) -> str:
    """Build functions, policies, views and grants anew, all or none. Returns their hash."""
    fingerprint = objects.objects_hash()
    with conn.transaction():
        for path in objects.object_files():
            conn.execute(objects.statements(path))
        conn.execute(objects.seal(fingerprint))
    return fingerprint


def _alembic(*, output_buffer: io.StringIO | None = None, connection: sa.Connection | None = None) -> Config:
    config = Config(output_buffer=output_buffer)
    config.set_main_option("script_location", str(migrations_dir()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
