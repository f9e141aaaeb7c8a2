"""The same corpus and question give the same plan: in another database, after upkeep, by any query plan."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import TupleRow
from sqlalchemy.engine import make_url

from planner import Planner
from planner.demo import corpus_folder, questions
from planner.ingest import scope_id

SCOPE = "reproducible"

Hashes = list[tuple[str | None, str | None]]

CONTENT = (
    "SELECT md5(string_agg(r, E'\\n' ORDER BY r COLLATE \"C\")) FROM ("
    " SELECT to_jsonb(n)::text AS r FROM planner.node n WHERE scope_id = %(s)s UNION ALL"
    " SELECT to_jsonb(e)::text FROM planner.edge e WHERE scope_id = %(s)s UNION ALL"
    " SELECT to_jsonb(p)::text FROM planner.span p WHERE scope_id = %(s)s UNION ALL"
    " SELECT to_jsonb(ns)::text FROM planner.node_span ns WHERE scope_id = %(s)s UNION ALL"
    " SELECT e.node_id || e.tx_from || e.tx_to || encode(e.text_hash, 'hex') || e.vec::text"
    "   FROM planner.embedding e WHERE scope_id = %(s)s) AS rows"
)
"""A digest of all that plans read of a scope; models are numbered by each database on its own."""


def asked(planner: Planner) -> Hashes:
    """Plan the questions of the shipped corpus in both plan models, and with a counter that reads texts."""
    plans = [
        planner.plan(SCOPE, question.text, budget_tokens=question.budget_tokens, **fields)
        for question in questions()
        for fields in ({"plan_model": "v1"}, {"plan_model": "v2", "counter": "openai:o200k_base"}, {"k": 5})
    ]
    return [(plan.plan_hash, plan.pool_hash) for plan in plans]


def digest(url: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute(CONTENT, {"s": scope_id(SCOPE)}).fetchone()
    assert row is not None
    return str(row[0])


@pytest.fixture(scope="module")
def here(module_database_url: str) -> Iterator[tuple[str, Planner, Hashes]]:
    """Give a database that holds nothing else, a planner on it, and the hashes of its plans."""
    with Planner.connect(module_database_url) as planner:
        assert not planner.ingest(SCOPE, corpus_folder()).failures
        yield module_database_url, planner, asked(planner)


def test_another_database_with_another_past_gives_the_same_hashes(
    database_url: str, here: tuple[str, Planner, Hashes]
) -> None:
    url, _, expected = here
    assert len(set(expected)) == len(expected)
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT setval('planner.embedding_model_id_seq', 41)")
    with Planner.connect(database_url) as planner:
        planner.ingest_text("older", "a.md", "Another scope was here before.")
        planner.ingest(SCOPE, corpus_folder())
        planner.ingest_text("younger", "b.md", "And another came after it.")
        assert digest(database_url) == digest(url)
        assert asked(planner) == expected


def test_asking_again_gives_the_same_hashes(here: tuple[str, Planner, Hashes]) -> None:
    _, planner, expected = here
    assert asked(planner) == expected


def test_upkeep_changes_no_hash(here: tuple[str, Planner, Hashes]) -> None:
    url, planner, expected = here
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (FULL, ANALYZE)")
        connection.execute("REINDEX SCHEMA planner")
    assert asked(planner) == expected


@pytest.mark.parametrize(
    "denied",
    [
        ["enable_indexscan", "enable_bitmapscan", "enable_indexonlyscan"],
        ["enable_nestloop", "enable_memoize"],
        ["enable_hashjoin", "enable_mergejoin", "enable_sort"],
    ],
    ids=lambda denied: denied[0],
)
def test_the_query_plan_decides_no_hash(here: tuple[str, Planner, Hashes], denied: list[str]) -> None:
    url, _, expected = here
    set_all = "; ".join(f"ALTER DATABASE {{0}} SET {name} = off" for name in denied)
    database = sql.Identifier(make_url(url).database or "")
    connection: psycopg.Connection[TupleRow]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(set_all).format(database))
        try:
            with Planner.connect(url) as planner:
                assert asked(planner) == expected
        finally:
            connection.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(database))
