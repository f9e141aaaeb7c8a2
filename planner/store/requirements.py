"""What a server must have before the planner can live on it, and what to tell a DBA where it has not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import psycopg

from planner.errors import MissingRoles, PlannerError, StoreError, UnsupportedServer
from planner.store.connect import Connection, run
from planner.store.objects import ROLES, dba_statements

LEAST_SERVER = 150000
LEAST_VECTOR = (0, 8)


@dataclass(frozen=True, slots=True)
class Facts:
    """A server as a login finds it. `server` is PostgreSQL's version as a number, 150004 for 15.4.

    `vector` is pgvector's version in this database (None: not installed), `vector_available` the one that
    could be installed (None: not on the server).
    """

    server: int
    vector: str | None
    vector_available: str | None
    vector_schema: str | None
    login: str
    database: str
    superuser: bool
    bypasses_row_security: bool

    @classmethod
    def of(cls, conn: Connection) -> Self:
        """Ask the server."""
        row = run(conn, "server_facts").fetchone()
        assert row is not None  # a SELECT without FROM has one row
        return cls(*row)

    @property
    def server_version(self) -> str:
        """PostgreSQL's version as people write it, `15.4`."""
        return f"{self.server // 10_000}.{self.server % 10_000}"

    def ground_refused(self, error: psycopg.Error) -> PlannerError:
        """Say which right the login lacks to make the extension or the schema, and who gives it."""
        said = error.diag.message_primary or str(error)
        if self.vector is None:
            return UnsupportedServer(
                f"pgvector is not installed in database {self.database}, and {self.login} may not install "
                f"it ({said}); a superuser does, there: CREATE EXTENSION vector;"
            )
        return StoreError(
            f"login {self.login} may not make the schema in database {self.database} ({said}); "
            "an administrator does, there: CREATE SCHEMA planner AUTHORIZATION planner_owner; "
            f"GRANT USAGE ON SCHEMA {self.vector_schema} TO {', '.join(ROLES)};"
        )


def require_server(facts: Facts) -> None:
    """Raise UnsupportedServer, in plain words, unless this is PostgreSQL 15 and pgvector 0.8 or newer."""
    if facts.server < LEAST_SERVER:
        raise UnsupportedServer(
            f"the server is PostgreSQL {facts.server_version}; the planner needs 15 or newer",
            server=facts.server_version,
        )
    offered = facts.vector or facts.vector_available
    if offered is None:
        raise UnsupportedServer(
            "the server has no pgvector; install its package for this PostgreSQL "
            f"(Debian: postgresql-{facts.server // 10_000}-pgvector), 0.8 or newer"
        )
    if version(offered) < LEAST_VECTOR:
        newer = version(facts.vector_available or "0") >= LEAST_VECTOR
        remedy = "run ALTER EXTENSION vector UPDATE" if newer else "install a newer package on the server"
        raise UnsupportedServer(
            f"pgvector is {offered}; the planner needs 0.8 or newer: {remedy}", vector=offered
        )


def require_roles(conn: Connection, facts: Facts) -> None:
    """Raise MissingRoles, with the statements that a DBA runs, unless the login can become all four roles."""
    found = {name: member for name, member, *_ in run(conn, "role_facts", {"roles": list(ROLES)})}
    missing = [role for role in ROLES if role not in found]
    if all(found.get(role) for role in ROLES):
        return
    statements = dba_statements(facts.login, missing=missing, inherit_clause=facts.server >= 160000)
    lacking = f"roles are missing: {', '.join(missing)}" if missing else f"{facts.login} lacks membership"
    raise MissingRoles(
        f"{lacking}; an administrator runs, once: {' '.join(statements)}",
        missing=missing,
        statements=list(statements),
    )


def version(text: str) -> tuple[int, ...]:
    """Read the leading numbers of a version, `0.8.6` as (0, 8, 6)."""
    numbers = []
    for part in text.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
