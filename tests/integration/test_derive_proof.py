"""The truth/cache proof: caches and indexes only add to truth; dropped, they leave plans as they were.

`score_model` v2 knows words by how many texts have them. Caches are texts: while there are any, they count.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from planner import Planner, Settings
from planner.ingest import scope_id
from tests.integration.graph import V1, Connection, ask, circle_embedder

SCOPE = "proof"
TRUTH = {"field": "class", "op": "eq", "value": "truth"}

OF_CACHES = {
    "nodes": """
        SELECT n.node_id FROM planner.node n
         WHERE n.scope_id = %(scope)s
           AND (n.attributes ->> 'kind' = 'summary'
                OR n.node_id IN (SELECT ns.node_id
                                   FROM planner.node_span ns JOIN planner.source s USING (scope_id, source_id)
                                  WHERE ns.scope_id = n.scope_id AND s.class = 'cache'))""",
    "sources": "SELECT source_id FROM planner.source WHERE scope_id = %(scope)s AND class = 'cache'",
}
ROWS = (
    ("edge", "src", "nodes"),
    ("edge", "dst", "nodes"),
    *((table, "node_id", "nodes") for table in ("embedding", "node_span", "node")),
    *((table, "source_id", "sources") for table in ("derivation", "span", "source_version", "source")),
)


def drop_caches(conn: Connection) -> int:
    """Delete every cache with all that came of it; return how many there were."""
    with conn.transaction():
        conn.execute("SET LOCAL session_replication_role = replica")
        for name, rows in OF_CACHES.items():
            statement = f"CREATE TEMP TABLE {name} ON COMMIT DROP AS {rows}"
            conn.execute(statement.encode(), {"scope": scope_id(SCOPE)}, prepare=False)
        for table, column, of in ROWS:
            delete = sql.SQL("DELETE FROM planner.{} WHERE scope_id = %s AND {} IN (TABLE {})")
            names = (sql.Identifier(name) for name in (table, column, of))
            done = conn.execute(delete.format(*names), (scope_id(SCOPE),))
        return done.rowcount


def drop_indexes(conn: Connection) -> set[str]:
    """Drop every index but those of the keys; return their names."""
    rows = conn.execute(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE c.relnamespace = 'planner'::regnamespace"
        " AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)"
    ).fetchall()
    for (name,) in rows:
        conn.execute(sql.SQL("DROP INDEX planner.{}").format(sql.Identifier(name)))
    return {name for (name,) in rows}


def hashes(planner: Planner, **fields: Any) -> list[str | None]:
    """Return the hashes of plans that find little, and much, in the whole scope."""
    wide = {"k": 40, "hops": 2}
    asked = (ask(planner, SCOPE, method="exact", **fields, **more) for more in ({"k": 3, "hops": 1}, wide))
    return [plan.plan_hash for plan in asked]


def test_without_caches_by_filter_or_for_good_plans_are_what_they_were_before_there_were_any(
    database_url: str,
) -> None:
    with (
        Planner.connect(database_url, settings=Settings(**V1), embedder=circle_embedder()) as planner,
        psycopg.connect(database_url, autocommit=True) as conn,
    ):
        for i in range(20):
            text = f"# Part {i}\n\nFact {i} at {i}.\n\nSee [the next](doc{i + 1}.md), at {90 - i}.\n"
            planner.ingest_text(SCOPE, f"doc{i}.md", text)
        whole, filtered = hashes(planner), hashes(planner, must=TRUTH)
        refs = [str(span.ref) for span in planner.source(SCOPE, "doc1.md").spans]
        for i in range(10):
            summary = f"Summary {i} of [that](doc{i}.md), at {i}.\n\nAnd a list at 1."
            planner.derive(SCOPE, summary, refs, source_id=f"summary{i}.md")
        planner.build_index(SCOPE)
        assert "cache" in {s.verdict.candidate.source_class for s in ask(planner, SCOPE, k=3).spans}
        assert not set(hashes(planner)) & set(whole)
        assert hashes(planner, must=TRUTH) == filtered
        assert drop_caches(conn) == 10
        dropped = drop_indexes(conn)
        assert len(dropped) > 5
        assert any(name.startswith("embedding_hnsw") for name in dropped)
        assert hashes(planner) == whole
        assert hashes(planner, must=TRUTH) == filtered


def test_v2_plans_are_what_they_were_once_the_caches_are_erased_and_the_indexes_dropped(
    database_url: str,
) -> None:
    with (
        Planner.connect(database_url, embedder=circle_embedder()) as planner,
        psycopg.connect(database_url, autocommit=True) as conn,
    ):
        for i in range(20):
            text = f"# Part {i}\n\nFact {i} at {i}.\n\nSee [the next](doc{i + 1}.md), at {90 - i}.\n"
            planner.ingest_text(SCOPE, f"doc{i}.md", text)
        whole, filtered = hashes(planner), hashes(planner, must=TRUTH)
        refs = [str(span.ref) for span in planner.source(SCOPE, "doc1.md").spans]
        for i in range(10):
            summary = f"Summary {i} of [that](doc{i}.md), at {i}.\n\nAnd a list at 1."
            planner.derive(SCOPE, summary, refs, source_id=f"summary{i}.md")
        assert not set(hashes(planner)) & set(whole)
        for i in range(10):
            planner.erase(SCOPE, f"summary{i}.md")
        drop_indexes(conn)
        assert hashes(planner) == whole
        assert hashes(planner, must=TRUTH) == filtered
