"""The named statements of `sql/queries`: `-- name: <name>` announces each, prose below it describes it.

Values are always parameters. A few statements have `{places}` for composed fragments (a compiled filter, a
checked integer); `compose` fills them through `psycopg.sql`, never by pasting text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from psycopg import sql

from planner.store.resources import sql_dir

_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)$", re.MULTILINE)


@cache
def queries() -> Mapping[str, str]:
    """Return every statement by name. Raises ValueError for a duplicate name or a missing description."""
    found: dict[str, str] = {}
    for path in sorted((sql_dir() / "queries").glob("*.sql")):
        for name, text in _split(path):
            if name in found:
                raise ValueError(f"{path.name}: a second query named {name!r}")
            found[name] = text
    return MappingProxyType(found)


def query(name: str) -> sql.SQL:
    """Return the statement `name`, ready to be executed with parameters."""
    return sql.SQL(queries()[name])


def compose(name: str, /, **fragments: sql.Composable) -> sql.Composed:
    """Return the statement `name` with its `{places}` filled."""
    return query(name).format(**fragments)


def _split(path: Path) -> list[tuple[str, str]]:
    pieces = _NAME.split(path.read_text(encoding="utf-8"))
    out = []
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        if not text.lstrip("\n").startswith("-- "):
            raise ValueError(f"{path.name}: query {name!r} has no description")
        # Without its indentation every statement is below the length up to which psycopg keeps conversions.
        lines = [line.strip() for line in text.splitlines() if not line.lstrip().startswith("--")]
        out.append((name, "\n".join(lines).strip().removesuffix(";")))
    return out
