"""How PostgreSQL keeps the lexical index: every row is looked up by its key, right after a load too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from planner import Planner
from planner.ingest import scope_id
from planner.ingest.media import IMPORT
from planner.lexical.terms import term_id
from planner.pipeline.reindex import unindexed
from planner.store.arrays import Bigints
from planner.store.connect import run
from planner.store.queries import query
from planner.store.write import MANY_ROWS
from tests.integration.graph import MODEL, Connection, at, circle_embedder
from tests.integration.test_query_plans import by_scope_alone, flattened, seq_scans

SCOPE, NODES, SMALL_SCOPES = "large", 3_000, 10


def load(planner: Planner, scope: str, nodes: int) -> None:
    """Write a scope of so many titled sources of a text each, which mentions the title of the next."""
    lines: list[dict[str, Any]] = []
    for i in range(nodes):
        text = f"Of the house w{i + 1}x and the river near w{i % 7}y, number {i}."
        span = {"source_id": f"doc{i:05}", "start": 0, "end": len(text)}
        node = {"record": "node", "node_id": f"n{i:05}", "kind": "fact", "spans": [span]}
        vector = {"record": "embedding", "node_id": f"n{i:05}", "model": MODEL, "vector": at(i)}
        titled = {"record": "source", "source_id": f"doc{i:05}", "title": f"House w{i}x", "text": text}
        lines += [titled, {"record": "span", **span}, node, vector]
    planner.ingest_text(scope, "graph.jsonl", "\n".join(map(json.dumps, lines)), media_type=IMPORT)


@dataclass
class Setting:
    """A database that holds a large scope among small ones."""

    planner: Planner
    conn: Connection

    def explain(self, name: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return every node of the plan by which a statement runs."""
        statement = unindexed(name) if name.startswith("unindexed") else query(name)
        explained = sql.Composed([sql.SQL("EXPLAIN (FORMAT JSON) "), statement])
        identity = scope_id(SCOPE)
        with self.planner.engine.store.scoped(identity, "writer", settings=MANY_ROWS) as conn:
            row: Any = run(conn, explained, {"scope_id": identity, **params}).fetchone()
        return list(flattened(row[0][0]["Plan"]))


@pytest.fixture(scope="module")
def loaded(module_database_url: str) -> Iterator[Setting]:
    with (
        Planner.connect(module_database_url, embedder=circle_embedder()) as planner,
        psycopg.connect(module_database_url, autocommit=True) as conn,
    ):
        for i in range(SMALL_SCOPES):
            load(planner, f"small-{i}", 20)
        conn.execute("ANALYZE")
        planner._unanalysed = -10 * NODES  # autovacuum has not come by, and the planner has not looked either
        load(planner, SCOPE, NODES)
        yield Setting(planner, conn)


@pytest.fixture(scope="module")
def analysed(loaded: Setting) -> Setting:
    loaded.conn.execute("VACUUM ANALYZE")
    return loaded


SOME_NODES = [f"n{i:05}" for i in range(0, 400, 10)]
SOME_SOURCES = [f"doc{i:05}" for i in range(0, 400, 10)]
SOME_TERMS = Bigints(np.array([term_id(f"w{i}x") for i in range(0, 400, 10)], dtype=np.int64))
ONES = Bigints(np.ones(40, dtype=np.int64))

STATEMENTS: Mapping[str, Mapping[str, Any]] = {
    "close_lexical": {"tx": 2, "nodes": SOME_NODES},
    "lower_terms": {"term": SOME_TERMS, "nodes": ONES},
    "drop_terms": {"term": SOME_TERMS},
    "delete_postings": {"term": SOME_TERMS, "doc": ONES},
    "erase_lexical": {"nodes": SOME_NODES, "sources": SOME_SOURCES[:1]},
    "prune_lexical": {"nodes": SOME_NODES, "since": [1] * len(SOME_NODES)},
    "current_titles": {"sources": SOME_SOURCES},
    "close_titles": {"tx": 2, "sources": SOME_SOURCES},
    "titles_by_term": {"terms": SOME_TERMS},
    "term_counts": {"terms": SOME_TERMS},
    "holding_both": {"as_of": 1, "rare": SOME_TERMS, "other": SOME_TERMS},
    "current_mentions": {"nodes": SOME_NODES, "targets": SOME_NODES},
    "unindexed_still": {"nodes": SOME_NODES, "since": [1] * len(SOME_NODES)},
    "unindexed_versions": {"node_id": "n02900", "tx_from": 1, "limit": 10},
}


BY_SCOPE_ALONE = {"close_titles": {"title"}}
"""Rows so short that to read all of this scope's is as fast as to look up some; in a larger one it is not."""


def assert_by_key(setting: Setting, name: str) -> None:
    plan = setting.explain(name, STATEMENTS[name])
    assert any("Relation Name" in node for node in plan)
    assert seq_scans(setting.conn, plan) == set()
    assert by_scope_alone(plan) <= BY_SCOPE_ALONE.get(name, set())


@pytest.mark.parametrize("name", STATEMENTS)
def test_what_keeps_the_index_finds_its_rows_by_key_right_after_a_load(loaded: Setting, name: str) -> None:
    assert_by_key(loaded, name)


@pytest.mark.parametrize("name", STATEMENTS)
def test_what_keeps_the_index_finds_its_rows_by_key_once_it_was_analysed(
    analysed: Setting, name: str
) -> None:
    assert_by_key(analysed, name)


def test_a_text_of_thousands_of_titles_finds_each_by_its_first_term(analysed: Setting) -> None:
    mentions = analysed.conn.execute(
        "SELECT count(*) FROM planner.edge WHERE scope_id = %s AND predicate = 'mentions'", (scope_id(SCOPE),)
    ).fetchone()
    assert mentions == (NODES - 1,)
