"""How PostgreSQL runs what is asked: by index, right after a load too, in a constant number of statements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql
from psycopg_pool import ConnectionPool

from planner import Planner, Settings
from planner.embedders import CallableEmbedder
from planner.errors import RequestError
from planner.ingest import scope_id
from planner.ingest.media import IMPORT
from planner.store.queries import query
from tests.integration.graph import Connection

SCOPE = "large"
NODES, DIMENSIONS, SMALL_SCOPES = 3_000, 16, 20
PAGES_READ_FASTER_WHOLE = 2
"""A table of so few pages is read whole however it is indexed."""


@dataclass
class Log:
    """What was sent to the database, in order, and how PostgreSQL would run what begins with `explained`."""

    sent: list[str] = field(default_factory=list)
    explained: str | None = None
    plans: list[dict[str, Any]] = field(default_factory=list)


def recorder(log: Log) -> type[psycopg.Cursor[Any]]:
    """Return a cursor that keeps what it executes, and has it explained in the same transaction before."""

    class Recorder(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            text = query.decode() if isinstance(query, bytes) else query
            text = text if isinstance(text, str) else text.as_string(self)
            if log.explained is not None and text.startswith(log.explained):
                super().execute(sql.SQL("EXPLAIN (FORMAT JSON) ") + query, params, **options)
                row: Any = self.fetchone()
                log.plans.append(row[0][0]["Plan"])
            log.sent.append(text)
            return super().execute(query, params, **options)

    return Recorder


def vectors(count: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(count, DIMENSIONS))


def embed(texts: list[str]) -> np.ndarray[Any, Any]:
    return vectors(len(texts), len(texts[0]))


def load(planner: Planner, scope: str, nodes: int) -> None:
    """Write a scope of so many nodes, each with a source and a span of its own and three edges."""
    lines: list[dict[str, Any]] = []
    for i, vector in enumerate(vectors(nodes, nodes)):
        span = {"source_id": f"doc{i:05}", "start": 0, "end": 13}
        lines.append({"record": "source", "source_id": f"doc{i:05}", "text": f"Number {i:05}."})
        name, about = f"n{i:05}", {"attributes": {"team": "red" if i % 3 else "blue"}}
        lines += [
            {"record": "span", **span},
            {"record": "node", "node_id": name, "kind": "fact", "spans": [span], **about},
            {"record": "embedding", "node_id": name, "model": "random", "vector": vector.tolist()},
        ]
        lines += [
            {
                "record": "edge",
                "src": name,
                "dst": f"n{(i * step + step) % nodes:05}",
                "predicate": f"p{step}",
            }
            for step in (1, 7, 31)
        ]
    planner.ingest_text(scope, "graph.jsonl", "\n".join(map(json.dumps, lines)), media_type=IMPORT)


@dataclass
class Setting:
    """One connection to a database that holds a large scope among small ones, and what goes through it."""

    planner: Planner
    log: Log
    conn: Connection

    def ask(self, scope: str = SCOPE, score_model: str = "v1", **fields: Any) -> Any:
        asked = {"embedding": vectors(1, 1)[0].tolist(), "k": 64, **fields}
        settings = self.planner.engine.settings.model_copy(update={"score_model": score_model})
        planner = Planner(replace(self.planner.engine, settings=settings))
        return planner.plan(scope, **{name: value for name, value in asked.items() if value is not None})

    def explain(self, beginning: str, scope: str = SCOPE, **fields: Any) -> list[dict[str, Any]]:
        """Return every node of the plan by which a statement of `ask` runs."""
        self.log.explained, self.log.plans = beginning, []
        self.ask(scope, **fields)
        self.log.explained = None
        return list(flattened(self.log.plans[-1]))


def flattened(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from flattened(below)


@pytest.fixture(scope="module")
def setting(module_database_url: str) -> Iterator[Setting]:
    log = Log()
    kwargs = {"autocommit": True, "cursor_factory": recorder(log)}
    settings = Settings(max_frac_per_source=1.0, exact_limit=1_000, k=900)
    embedder = CallableEmbedder("random", DIMENSIONS, embed)
    with (
        ConnectionPool(module_database_url, min_size=1, max_size=1, kwargs=kwargs, open=True) as pool,
        psycopg.connect(module_database_url, autocommit=True) as conn,
    ):
        planner = Planner.from_pool(pool, settings=settings, embedder=embedder)
        for i in range(SMALL_SCOPES):
            load(planner, f"small-{i}", 20)
        yield Setting(planner, log, conn)


BLUE = {"field": "attributes.team", "op": "eq", "value": "blue"}

WORDS: Mapping[str, Any] = {"score_model": "v2", "text": "Number 00040, 00041"}

STATEMENTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "scope_state": ("SELECT s.last_tx", {}),
    "nearest, exact": ("WITH near", {"method": "exact"}),
    "nearest, restricted": (
        "WITH near",
        {"method": "exact", "must": BLUE},
    ),
    "nearest, as of": ("WITH near", {"as_of": 1, "match": {"field": "kind", "op": "eq", "value": "fact"}}),
    "nearest, by provenance": (
        "WITH near",
        {"must": {"field": "source_id", "op": "eq", "value": "doc00040"}, "seeds": [{"node_id": "n00001"}]},
    ),
    "expand": ("WITH RECURSIVE walk (node_id, hops", {}),
    "expand, restricted": (
        "WITH RECURSIVE walk (node_id, hops",
        {"must": {"field": "trust", "op": "gte", "value": "external"}, "direction": "out"},
    ),
    "lexical_corpus_then": ("SELECT s.lexical, past", {**WORDS, "as_of": 1}),
    "term_counts": ("SELECT t.term", WORDS),
    "term_counts_then": ("SELECT r.term", {**WORDS, "as_of": 1}),
    "lexical_leg": ("SELECT l.node_id, s.score", WORDS),
    "lexical_leg, restricted": ("SELECT l.node_id, s.score", {**WORDS, "must": BLUE}),
    "texts": ("SELECT l.node_id, l.length", WORDS),
    "texts, restricted": ("SELECT l.node_id, l.length", {**WORDS, "must": BLUE}),
    "walk": ("WITH RECURSIVE walk (node_id, is_before", WORDS),
    "walk, restricted": ("WITH RECURSIVE walk (node_id, is_before", {**WORDS, "must": BLUE}),
    "standing": ("SELECT w.node_id, n.is_inside", WORDS),
    "standing, restricted": ("SELECT w.node_id, n.is_inside", {**WORDS, "must": BLUE}),
    "links": ("(SELECT 'mentions' AS link", WORDS),
    "slices": ("SELECT w.i", {}),
    "counted": ("SELECT t.text_hash", {"counter": "openai:o200k_base"}),
}

BY_SCOPE_ALONE = {name: {"embedding", "node"} for name in STATEMENTS if name.startswith("nearest")} | {
    "expand, restricted": {"node_span", "source", "source_version"},
    "lexical_corpus_then": {"lexical"},
}
"""What may read all that a table holds of the scope: an exact search and a match, whose universe that is, and
a filter on provenance, which PostgreSQL may answer once for all nodes."""


def seq_scans(conn: Connection, plan: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the planner's tables that a plan reads whole and that have pages enough not to."""
    pages: dict[str, int] = dict(
        conn.execute(
            "SELECT relname::text, pg_relation_size(oid) / current_setting('block_size')::int FROM pg_class"
            " WHERE relnamespace = 'planner'::regnamespace AND relkind = 'r'"
        ).fetchall()
    )
    read = {node["Relation Name"] for node in plan if node["Node Type"] == "Seq Scan"}
    return {table for table in read if pages.get(table, 0) > PAGES_READ_FASTER_WHOLE}


def by_scope_alone(plan: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the tables of which a plan reads, by an index, all that the scope has."""
    found, table = set(), ""
    for node in plan:
        table = node.get("Relation Name", table)  # a bitmap index scan stands beneath its table's node
        columns = set(re.findall(r"\(?(\w+) (?:=|<|>)", node.get("Index Cond", "")))
        if columns and columns <= {"scope_id", "model_id", "tx_from", "tx_to"}:
            found.add(table)
    return found


@pytest.fixture(scope="module")
def loaded(setting: Setting) -> Setting:
    """Give the large scope just loaded: what statistics there are were made of the small ones."""
    counts = (
        "INSERT INTO planner.token_count SELECT %s, sha256(i::text::bytea), 'openai:o200k_base', 1"
        " FROM generate_series(1, 20000) AS i"
    )
    setting.conn.execute(counts, (scope_id("small-0"),))
    setting.conn.execute("ANALYZE")
    loader = Planner(setting.planner.engine)
    loader._unanalysed = -10 * NODES  # autovacuum has not come by, and the planner has not looked either
    load(loader, SCOPE, NODES)
    loader.ingest_text(SCOPE, "later.txt", "Later.")
    for _ in range(6):
        setting.ask()
    return setting


@pytest.fixture(scope="module")
def analysed(loaded: Setting) -> Setting:
    """Give the same once PostgreSQL has looked at what it holds."""
    loaded.conn.execute("VACUUM ANALYZE")
    return loaded


@pytest.fixture(scope="module")
def indexed(analysed: Setting) -> Setting:
    """Give the same with the scope's own vector index."""
    built = analysed.planner.build_index(SCOPE)
    assert (built.built, built.name) == (True, own_index(analysed))
    return analysed


def own_index(setting: Setting) -> str:
    (model_id,) = setting.conn.execute("SELECT model_id FROM planner.embedding_model").fetchone() or ("",)
    return f"embedding_hnsw_{scope_id(SCOPE).hex}_{model_id}"


def assert_by_index(setting: Setting, name: str) -> None:
    beginning, fields = STATEMENTS[name]
    plan = setting.explain(beginning, **fields)
    assert any("Relation Name" in node for node in plan)
    assert seq_scans(setting.conn, plan) == set()
    assert by_scope_alone(plan) <= BY_SCOPE_ALONE.get(name, set())


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_freshly_loaded_scope_is_read_by_index(loaded: Setting, name: str) -> None:
    assert_by_index(loaded, name)


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_scope_is_read_by_index_once_it_was_analysed(analysed: Setting, name: str) -> None:
    assert_by_index(analysed, name)


@pytest.mark.parametrize(
    "fields",
    [{}, {"k": 900}, {"must": BLUE}, {"embedding": None, "text": "one", "parts": ["three", "fifteen"]}],
    ids=str,
)
def test_a_large_scope_is_searched_through_its_own_vector_index(
    indexed: Setting, fields: Mapping[str, Any]
) -> None:
    assert indexed.ask(**fields).recall["method"] == "ann"
    plan = indexed.explain("WITH near", **fields)
    (scan,) = [node for node in plan if "Order By" in node]
    assert (scan["Index Name"], scan["Relation Name"]) == (own_index(indexed), "embedding")
    assert seq_scans(indexed.conn, plan) == set()


def test_what_comes_after_the_search_is_planned_as_ever(indexed: Setting) -> None:
    seen = indexed.explain("WITH RECURSIVE walk (node_id, hops")
    assert not any(node.get("Disabled") for node in seen)
    assert any(node["Node Type"] == "Sort" for node in seen)


def test_the_vector_index_finds_what_an_exact_search_finds(indexed: Setting) -> None:
    ann, exact = indexed.ask(k=10, hops=0), indexed.ask(k=10, hops=0, method="exact")
    assert ann.recall["semantic"]["returned"] == ann.recall["semantic"]["asked"] == 10 + 32
    assert ann.recall["semantic"]["underfilled"] is False
    shared = {s.verdict.candidate.ref for s in ann.spans} & {s.verdict.candidate.ref for s in exact.spans}
    assert len(shared) >= 9


def test_the_vector_index_serves_no_other_scope_and_no_other_time(indexed: Setting) -> None:
    assert indexed.ask("small-3").recall["method"] == "exact"
    assert indexed.ask(as_of=2).recall["method"] == "ann"  # the newest, by its number
    indexed.planner.ingest_text(SCOPE, "more.md", "One more text.")
    assert indexed.ask(as_of=1).recall["method"] == "exact"
    assert own_index(indexed) not in {
        node.get("Index Name") for node in indexed.explain("WITH near", as_of=1)
    }
    with pytest.raises(RequestError, match="newest"):
        indexed.ask(as_of=1, method="ann")


def test_an_index_that_is_there_is_not_built_again(indexed: Setting) -> None:
    assert indexed.planner.build_index(SCOPE).built is False


def sent_by(setting: Setting, call: Callable[[], Any]) -> tuple[list[str], Any]:
    """Return how the statements begin that a call sends, and what it returns."""
    before = len(setting.log.sent)
    returned = call()
    return [text[:40] for text in setting.log.sent[before:]], returned


@pytest.mark.parametrize("fields", [{}, {"counter": "openai:cl100k_base"}], ids=str)
def test_a_plan_is_a_constant_number_of_statements_whatever_the_pool_holds(
    indexed: Setting, fields: Mapping[str, Any]
) -> None:
    sent, sizes = [], set()
    for scope, limits in (("small-1", {"k": 1, "hops": 0}), ("small-2", {}), (SCOPE, {})):
        asked = {"method": "exact", "budget_tokens": 1_000_000, **fields, **limits}
        statements, plan = sent_by(indexed, partial(indexed.ask, scope, **asked))
        sent.append(statements)
        sizes.add(plan.stats["selected"])
    assert sorted(sizes)[0] == 1
    assert sorted(sizes)[-1] > 100
    assert sent == [sent[0]] * 3
    assert len(sent[0]) <= 10  # settings of two transactions, then what recall.md and trace.md say


def entered_anywhere(conn: Connection, plan: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the indexes of which a plan reads all that the scope has, their second column being unbound."""
    found = set()
    for node in plan:
        if "Index Cond" in node:
            definition = "SELECT pg_get_indexdef(%s::regclass, 2, false)"
            (column,) = conn.execute(definition, (f"planner.{node['Index Name']}",)).fetchone() or ("",)
            if re.search(rf"\(?{column} (?:=|<|>)", node["Index Cond"]) is None:
                found.add(node["Index Name"])
    return found


@pytest.mark.parametrize("name", ["current_versions", "current_nodes", "current_edges", "embedded_hashes"])
def test_an_ingest_compares_by_key_whatever_the_scope_holds(analysed: Setting, name: str) -> None:
    setting = analysed
    for i in range(2):
        setting.log.explained, setting.log.plans = query(name).as_string(None)[:80], []
        blocks = [f"Paragraph {n} of {name}, version {i if n < 100 else 0}." for n in range(200)]
        setting.planner.ingest_text(SCOPE, f"{name}.md", "\n\n".join(blocks))
    setting.log.explained = None
    plan = list(flattened(setting.log.plans[-1]))
    assert any("Index Cond" in node for node in plan)
    assert seq_scans(setting.conn, plan) == set()
    assert entered_anywhere(setting.conn, plan) == set()


def test_an_ingest_is_a_constant_number_of_statements_whatever_the_file_holds(setting: Setting) -> None:
    few, _ = sent_by(setting, partial(load, Planner(setting.planner.engine), "of-10", 10))
    many, _ = sent_by(setting, partial(load, Planner(setting.planner.engine), "of-200", 200))
    assert few == many
    assert len(few) <= 30
