"""What is true of a scope whatever happened to it, asked of its rows alone: by SQL, by hashing them again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from planner import Planner, Settings
from planner.errors import PlannerError, UnknownScope
from planner.hashing import text_hash
from planner.ingest import scope_id
from planner.lexical.packing import frequencies, unpack
from planner.types import OPEN_TX
from tests.integration.graph import Connection, rows_of

BODIES = """
    SELECT v.source_id, v.version_tx, v.extends_tx, v.body, v.text_hash,
           p.starts, p.ends, p.ordinals, p.hashes
      FROM planner.source_version v
     CROSS JOIN LATERAL (
           SELECT coalesce(array_agg(x.span_start ORDER BY x.ordinal), '{}') AS starts,
                  coalesce(array_agg(x.span_end ORDER BY x.ordinal), '{}') AS ends,
                  coalesce(array_agg(x.ordinal ORDER BY x.ordinal), '{}') AS ordinals,
                  coalesce(array_agg(x.text_hash ORDER BY x.ordinal), '{}') AS hashes
             FROM planner.span x
            WHERE x.scope_id = %(s)s AND x.source_id = v.source_id AND x.version_tx = v.version_tx
          ) p
     WHERE v.scope_id = %(s)s
     ORDER BY v.source_id, v.version_tx"""

UNEMBEDDED = """
    SELECT n.node_id, n.tx_from
      FROM planner.node n
     WHERE n.scope_id = %(s)s AND n.tx_to = %(open)s
       AND EXISTS (SELECT FROM planner.node_span ns
                    WHERE ns.scope_id = %(s)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from)
       AND NOT EXISTS (SELECT FROM planner.embedding e
                         JOIN planner.scope_model m
                           ON m.scope_id = %(s)s AND m.model_id = e.model_id AND m.tx_to = %(open)s
                        WHERE e.scope_id = %(s)s AND e.node_id = n.node_id AND e.tx_to = %(open)s)"""


def check_invariants(url: str, scope: str) -> None:
    """Assert every invariant of a scope; of one that is not there, that it has no row in any table.

    `url` is a superuser's.
    """
    with Planner.connect(url, settings=Settings(pool_size=2)) as planner:
        found = list(_faults(planner, url, scope))
    assert not found, "\n".join(found)


def check_vectors(url: str, scope: str) -> None:
    """Assert that every current node with a text has its vector: where the embedder gives each text one."""
    with session(url) as conn:
        assert conn.execute(UNEMBEDDED, _params(scope)).fetchall() == []


def rows_left(url: str, scope: str) -> dict[str, int]:
    """Return how many rows each tenant table holds of a scope, without those that hold none."""
    with session(url) as conn:
        return {table: count for table, count in rows_of(conn, scope).items() if count}


def session(url: str) -> Connection:
    """Open a session to look on from; it prepares nothing, as a pooler wants."""
    return psycopg.connect(url, autocommit=True, prepare_threshold=None)


def _faults(planner: Planner, url: str, scope: str) -> Iterator[str]:
    try:
        yield from (f"ledger: {fault}" for fault in planner.verify_ledger(scope).faults)
    except UnknownScope:
        yield from (f"{count} rows in {table} of no scope" for table, count in rows_left(url, scope).items())
    with session(url) as conn:
        for said, statement in _invariants():
            rows = conn.execute(statement, _params(scope)).fetchall()
            yield from (f"it is not so that {said}: {row}" for row in rows)
        yield from _span_faults(conn, _params(scope))
        yield from _posting_faults(conn, _params(scope))
        plans = conn.execute(
            "SELECT plan_id FROM planner.plan WHERE scope_id = %(s)s AND plan_hash IS NOT NULL",
            _params(scope),
        ).fetchall()
    for (plan_id,) in plans:
        try:
            planner.replay(f"{scope}:{plan_id}")
        except PlannerError as error:
            yield str(error)


def _invariants() -> Iterator[tuple[str, bytes]]:
    text = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    pieces = re.split(r"^-- invariant: (.*)$", text, flags=re.MULTILINE)
    for said, statement in zip(pieces[1::2], pieces[2::2], strict=True):
        yield said, statement.strip().removesuffix(";").encode()


def _span_faults(conn: Connection, params: dict[str, Any]) -> Iterator[str]:
    """Hash every body and every span of it again, and count the ordinals on through each chain."""
    follows = 0
    for source_id, tx, extends, body, hashed, starts, ends, ordinals, hashes in conn.execute(BODIES, params):
        ref = f"{source_id}@{tx}"
        follows = follows if extends is not None else 0
        if ordinals != list(range(follows, follows + len(ordinals))):
            yield f"{ref}: the ordinals {ordinals} do not go on from {follows}"
        follows += len(ordinals)
        if body is None:
            continue
        if text_hash(body) != hashed:
            yield f"{ref}: the body has another hash"
        for start, end, expected in zip(starts, ends, hashes, strict=True):
            if end > len(body) or text_hash(body[start:end]) != expected:
                yield f"{ref}:{start}-{end}: the bytes have another hash"


def _posting_faults(conn: Connection, params: dict[str, Any]) -> Iterator[str]:
    """Make the postings of every forward row again, and name those that are missing or are another's."""
    forward = conn.execute("SELECT doc, terms, context FROM planner.lexical WHERE scope_id = %(s)s", params)
    rows = [(doc, unpack(terms + context)) for doc, terms, context in forward]
    term, place, frequency = (found.tolist() for found in frequencies([whole for _, whole in rows]))
    made = {
        (term, rows[at][0], often, len(rows[at][1]))
        for term, at, often in zip(term, place, frequency, strict=True)
    }
    asked = "SELECT term, doc, frequency, length FROM planner.posting WHERE scope_id = %(s)s"
    held = set(conn.execute(asked, params).fetchall())
    yield from (f"postings: {posting} is missing" for posting in sorted(made - held))
    yield from (f"postings: {posting} is of no forward row" for posting in sorted(held - made))


def _params(scope: str) -> dict[str, Any]:
    return {"s": scope_id(scope), "open": OPEN_TX}
