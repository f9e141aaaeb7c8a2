"""What cannot be asked or ingested is refused by type, names its field, and leaves nothing behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner import Planner, Settings
from planner.errors import (
    ConflictingInput,
    EmbedderError,
    MalformedInput,
    PlannerError,
    RequestError,
    UnknownCounter,
    UnknownModel,
    UnknownScope,
)
from planner.ingest.media import IMPORT
from planner.request import LIMITED
from tests.integration.graph import QUESTION, Connection, Graph, circle_embedder, fan, fresh_scope, rows_of

LIMITS = {name: getattr(Settings(), name) + 1 for name in LIMITED}

REFUSED: list[tuple[dict[str, Any], type[PlannerError], str]] = [
    ({"model": "gpt-none"}, UnknownModel, "context_window"),
    ({"counter": "abacus"}, UnknownCounter, "abacus"),
    ({"counter": "hf:0123456789abcdef"}, UnknownCounter, "tokenizer.json"),
    *(({name: value}, RequestError, name) for name, value in LIMITS.items()),
    ({"as_of": 3}, RequestError, "as_of"),
    ({"as_of": 0}, RequestError, "as_of"),
    ({"as_of": 2**62}, RequestError, "as_of"),
    ({"embedding": [1.0, 0.0, 0.0]}, RequestError, "3 dimensions"),
    ({"embedding": [1.0]}, RequestError, "1 dimensions"),
    ({"embedding": [float("nan"), 0.0]}, RequestError, "embedding"),
    ({"method": "ann"}, RequestError, "method"),
    ({"budget_tokens": 0}, RequestError, "budget_tokens"),
    ({"budget_tokens": -1}, RequestError, "budget_tokens"),
    ({"k": 0}, RequestError, "k"),
    ({"hops": -1}, RequestError, "hops"),
    ({"min_score": 1.5}, RequestError, "min_score"),
    ({"window": {"axis": "valid"}}, RequestError, "window"),
    ({"window": {"from": "yesterday"}}, RequestError, "window"),
    ({"match": {"field": "nothing", "op": "eq", "value": 1}}, RequestError, "match"),
    ({"must": {"field": "kind", "op": "like", "value": "x"}}, RequestError, "must"),
    ({"seeds": [{"node_id": "", "score": 1}]}, RequestError, "seeds"),
    ({"seeds": [{"node_id": "a", "score": 2}]}, RequestError, "seeds"),
    ({"text": "a\x00b"}, RequestError, "NUL"),
    ({"colour": "red"}, RequestError, "colour"),
]


@pytest.fixture(scope="module")
def asked(planner: Planner) -> str:
    """Give a scope of two transactions."""
    name = fresh_scope("asked")
    fan(0, 10).into(planner, name)
    fan(0, 20).into(planner, name)
    return name


@pytest.mark.parametrize(("fields", "error", "named"), REFUSED)
def test_a_bad_request_is_refused_by_name_and_nothing_is_written(
    planner: Planner,
    conn: Connection,
    asked: str,
    fields: dict[str, Any],
    error: type[PlannerError],
    named: str,
) -> None:
    before = rows_of(conn, asked)
    with pytest.raises(error) as caught:
        planner.plan(asked, **{"embedding": QUESTION, **fields})
    assert named in str(caught.value)
    assert "plan" not in caught.value.detail
    assert rows_of(conn, asked) == before


def test_a_scope_that_does_not_exist_is_not_made_by_asking(planner: Planner, conn: Connection) -> None:
    name = fresh_scope("nobody")
    with pytest.raises(UnknownScope, match=name):
        planner.plan(name, embedding=QUESTION)
    assert set(rows_of(conn, name).values()) == {0}


@pytest.mark.parametrize("name", ["", "-a", "a b", "ä", "a" * 64, "a\n", "a'; DROP SCHEMA planner"])
def test_a_name_that_is_no_scope_is_refused_everywhere(planner: Planner, name: str) -> None:
    for call in (
        lambda: planner.plan(name, embedding=QUESTION),
        lambda: planner.ingest_text(name, "a.txt", "Text."),
        lambda: planner.build_index(name),
        lambda: planner.sources(name),
    ):
        with pytest.raises(RequestError, match="scope"):
            call()


def test_an_operators_lower_limit_is_the_one_that_a_request_may_not_raise(
    planner: Planner, asked: str
) -> None:
    strict = Planner.from_pool(
        planner.engine.store.pool, settings=Settings(k=5, hops=1), embedder=circle_embedder()
    )
    assert strict.plan(asked, embedding=QUESTION, k=5, hops=1).request["k"] == 5
    raised: list[dict[str, Any]] = [{"k": 6}, {"hops": 2}]
    for fields in raised:
        with pytest.raises(RequestError, match="operator's limit"):
            strict.plan(asked, embedding=QUESTION, **fields)


def _records(*records: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, records))


SOURCE = {"record": "source", "source_id": "new.txt", "text": "A new text."}
EDGE = {"record": "edge", "predicate": "knows"}

BAD_GRAPHS: list[tuple[str, type[PlannerError], str]] = [
    (_records(SOURCE, {**EDGE, "src": "n0", "dst": "nobody"}), ConflictingInput, "'nobody'"),
    (_records(SOURCE, {**EDGE, "src": "nobody", "dst": "n0"}), ConflictingInput, "'nobody'"),
    (_records(SOURCE, {"record": "node", "node_id": "x", "kind": "fact", "spans": [
        {"source_id": "new.txt", "start": 0, "end": 99}]}), MalformedInput, "line 2"),
    (_records(SOURCE, {"record": "span", "source_id": "new.txt", "start": 0, "end": 5, "kind": "poem"}),
     MalformedInput, "'poem'"),
    (_records({**SOURCE, "class": "cache", "source_id": "n0.txt"}), ConflictingInput, "n0.txt"),
    (_records({"record": "node", "node_id": "x", "kind": "fact"},
              {"record": "embedding", "node_id": "x", "model": "square", "vector": [1, 0]}),
     ConflictingInput, "square"),
    (_records({"record": "node", "node_id": "x", "kind": "fact"},
              {"record": "embedding", "node_id": "x", "model": "circle", "vector": [1, 0, 0]}),
     ConflictingInput, "3 dimensions"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "error", "named"), BAD_GRAPHS)
def test_a_bad_graph_is_refused_by_name_and_nothing_is_written(
    planner: Planner, conn: Connection, asked: str, text: str, error: type[PlannerError], named: str
) -> None:
    before = rows_of(conn, asked)
    with pytest.raises(error) as caught:
        planner.ingest_text(asked, "graph.jsonl", text, media_type=IMPORT)
    assert named in str(caught.value)
    assert rows_of(conn, asked) == before


def test_an_embedder_that_is_not_the_scopes_writes_nothing(
    planner: Planner, conn: Connection, asked: str
) -> None:
    before = rows_of(conn, asked)
    words = Planner.from_pool(planner.engine.store.pool, settings=Settings())
    with pytest.raises(EmbedderError, match="made by circle"):
        words.ingest_text(asked, "new.txt", "A new text.")
    assert rows_of(conn, asked) == before


def test_a_graph_that_needs_no_vector_needs_no_embedder(
    planner: Planner, conn: Connection, asked: str
) -> None:
    words = Planner.from_pool(planner.engine.store.pool, settings=Settings())
    report = Graph().node("bare").edge("bare", "n0").into(words, asked)
    assert report.counts == {"versions": 0, "spans": 0, "nodes": 1, "edges": 1, "embeddings": 0}
