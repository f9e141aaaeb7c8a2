"""What is interrupted: operations, each in a scope that is ready for it; and the rows that are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from psycopg import sql

from planner import Planner
from planner.embedders import CallableEmbedder
from planner.ingest import scope_id
from planner.store.connect import run
from tests.integration.graph import Connection, circle

Rows = Counter[tuple[str, str]]
"""The rows of a scope: the table, and a digest of what does not differ from one scope to another."""

NAMED_AFRESH = [
    *("scope_id", "name", "created_at", "recorded_at", "entry_hash", "model_id"),
    *("plan_id", "request", "timings", "recall", "stats"),
]
"""Columns that differ where the same is done in another scope, or again."""


@dataclass(frozen=True)
class Operation:
    """One call, and what has to be there before it."""

    prepare: Callable[[Planner, str], Any]
    call: Callable[[Planner, str], Any]


def base(planner: Planner, scope: str) -> None:
    """Put a document, a conversation and a plan into a scope."""
    planner.ingest_text(scope, "doc.md", "# Title\n\nThe first at 10.\n\nThe second at 20.\n\nGone at 30.\n")
    planner.append(scope, "talk", [{"id": "1", "role": "user", "content": "Asked at 40."}])
    planner.plan(scope, "at 10")


def unindexed(planner: Planner, scope: str) -> None:
    """Put the same into a scope, and take its lexical index for none."""
    base(planner, scope)
    identity = scope_id(scope)
    with planner.engine.store.scoped(identity, "writer") as conn:
        run(conn, "mark_lexical", {"scope_id": identity, "lexical": None})


def nothing(planner: Planner, scope: str) -> None:
    """Leave the scope to be made."""


def sphere() -> CallableEmbedder:
    """Return another model: the circle in three dimensions."""
    return CallableEmbedder("sphere", 3, lambda texts: np.pad(circle(texts), ((0, 0), (0, 1))))


TURNS = [
    {"id": "2", "role": "assistant", "content": "Told at 50."},
    {"id": "3", "role": "user", "content": "Asked at 40."},
]

OPERATIONS = {
    "first ingest": Operation(nothing, lambda p, s: p.ingest_text(s, "new.md", "# New\n\nA text at 70.")),
    "ingest": Operation(
        base,
        lambda p, s: p.ingest_text(
            s, "doc.md", "# Title\n\nThe first at 10.\n\nAnother at 60.\n\n[it](x.md)"
        ),
    ),
    "append": Operation(base, lambda p, s: p.append(s, "talk", TURNS)),
    "plan": Operation(base, lambda p, s: p.plan(s, "at 20", k=3)),
    "reembed": Operation(base, lambda p, s: p.reembed(s, sphere(), batch=4)),
    "erase": Operation(base, lambda p, s: p.erase(s, "doc.md")),
    "index": Operation(unindexed, lambda p, s: p.build_lexical_index(s)),
}

SCRUB = "scrub"

ALONE = {SCRUB: Operation(base, lambda p, s: p.erase(s, "doc.md", scrub=True))}
"""What waits for every other user of the tables."""


def rows(conn: Connection, scope: str) -> Rows:
    """Return the rows of a scope. The trace of a plan that failed is left out: it says so."""
    tables = conn.execute(
        "SELECT c.relname FROM pg_class c"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'scope_id'"
        " WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind = 'r'"
    ).fetchall()
    one = sql.SQL(
        "SELECT {name}, md5((to_jsonb(t) - %(afresh)s::text[] #- '{{detail,vectors}}')::text)"
        " FROM planner.{table} t WHERE t.scope_id = %(scope_id)s"
        " AND coalesce(to_jsonb(t) ->> 'plan_id' <> ALL (ARRAY(SELECT p.plan_id::text FROM planner.plan p"
        " WHERE p.scope_id = %(scope_id)s AND p.outcome = 'failed')), true)"
    )
    each = [one.format(name=sql.Literal(name), table=sql.Identifier(name)) for (name,) in tables]
    params = {"scope_id": scope_id(scope), "afresh": NAMED_AFRESH}
    return Counter(conn.execute(sql.SQL(" UNION ALL ").join(each), params).fetchall())
