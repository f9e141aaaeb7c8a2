"""The SQL files that hold no data and are run again at every upgrade: `sql/objects/NN_*.sql`, in order.

Those below 10 come before the migrations (roles, schema, session, placement), the others after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blake3 import blake3
from psycopg import sql

from planner.store.resources import sql_dir

ROLES = ("planner_owner", "planner_writer", "planner_reader", "planner_inspector")
"""The roles of the planner; nobody logs in as one."""

_MARK = "evidence-planner objects "


def role_files() -> tuple[Path, ...]:
    """Return what creates roles: left out where a DBA made them."""
    return _numbered(0, 1)


def ground_files() -> tuple[Path, ...]:
    """Return what comes before the migrations: extension, schema, session, placement."""
    return _numbered(1, 10)


def object_files() -> tuple[Path, ...]:
    """Return what comes after the migrations: functions, policies, views, grants."""
    return _numbered(10, 100)


def statements(path: Path) -> sql.SQL:
    """Return a file's statements, to be executed in one call without parameters."""
    return sql.SQL(path.read_text(encoding="utf-8"))


def objects_hash() -> str:
    """Return the BLAKE3 of all object files with their names, as hex: what the schema's comment records."""
    digest = blake3()
    for path in _numbered(0, 100):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def seal(fingerprint: str) -> sql.Composed:
    """Return the statement that records in the schema's comment which objects were built."""
    return sql.SQL("COMMENT ON SCHEMA planner IS {}").format(sql.Literal(_MARK + fingerprint))


def read_seal(comment: str | None) -> str | None:
    """Return the hash that `seal` recorded, or None where the comment is another one."""
    return comment.removeprefix(_MARK) if comment and comment.startswith(_MARK) else None


def dba_statements(
    login: str, *, missing: Sequence[str] = ROLES, inherit_clause: bool = True
) -> tuple[str, ...]:
    """Return what a DBA runs where `migrate` may not: create `missing` roles, let `login` become all four.

    `inherit_clause` is for PostgreSQL 16 and newer; 15 does not know it.
    """
    create = sql.SQL("CREATE ROLE {} NOLOGIN NOBYPASSRLS;")
    grant = sql.SQL("GRANT {} TO {}{};").format(
        sql.SQL(", ").join(map(sql.Identifier, ROLES)),
        sql.Identifier(login),
        sql.SQL(" WITH INHERIT FALSE, SET TRUE" if inherit_clause else ""),
    )
    return (*(create.format(sql.Identifier(role)).as_string(None) for role in missing), grant.as_string(None))


def _numbered(first: int, beyond: int) -> tuple[Path, ...]:
    files = sorted((sql_dir() / "objects").glob("[0-9][0-9]_*.sql"))
    return tuple(path for path in files if first <= int(path.name[:2]) < beyond)
