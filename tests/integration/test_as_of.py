"""A plan as of a transaction is the plan that was made then, whatever was ingested since."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, radians
from typing import Any

import pytest

from planner import Planner
from planner.ingest import scope_id
from planner.types import EvidencePlan
from tests.integration.graph import Connection, Graph, ask, fan, nodes_of

FIRST = "# Gate\n\nThe gate closes at 10.\n\nSee the log at 40.\n\nA last word at 70.\n"

QUESTIONS: list[dict[str, Any]] = [
    {"text": "at 0"},
    {"text": "at 0", "parts": ["at 70"], "k": 1},
    {"text": "at 40", "match": {"field": "kind", "op": "eq", "value": "heading"}, "hops": 1},
    {"text": "at 90", "must": {"field": "trust", "op": "eq", "value": "external"}, "fanout": 1},
    {"seeds": [{"node_id": "n1"}], "window": {"from": "2020-01-01T00:00:00Z"}, "direction": "out"},
    {"text": "at 20", "counter": "openai:o200k_base", "plan_model": "v2"},
]


def first(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "doc.md", FIRST)
    graph = fan(0, 30, 60).edge("n0", "n1").edge("n1", "n2", 0.5)
    graph.node("late", 50, text="Valid later.", valid_from="2030-01-01T00:00:00Z").into(planner, scope)


def change_text(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "doc.md", FIRST.replace("closes at 10", "stays open at 0"))


def change_trust(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "doc.md", FIRST, trust="verified")


def change_graph(planner: Planner, scope: str) -> None:
    graph = Graph().node("n1", 5, text="Rewritten.").node("n3", 1, text="A new one.", confidence=0.5)
    graph.edge("n3", "n2").edge("n1", "n2", 0.9).into(planner, scope)


def change_edges(planner: Planner, scope: str) -> None:
    Graph().edge("n2", "n0").edge("n0", "n1", 0.1).into(planner, scope)


def there_and_back(planner: Planner, scope: str) -> None:
    change_text(planner, scope)
    planner.ingest_text(scope, "doc.md", FIRST)


CHANGES = [change_text, change_trust, change_graph, change_edges, there_and_back]


def hashes(plans: list[EvidencePlan]) -> list[tuple[str | None, str | None]]:
    return [(plan.plan_hash, plan.pool_hash) for plan in plans]


@pytest.mark.parametrize("change", CHANGES)
def test_a_plan_as_of_before_a_change_equals_the_one_made_then(
    planner: Planner, conn: Connection, scope: str, change: Callable[[Planner, str], None]
) -> None:
    first(planner, scope)
    then = [ask(planner, scope, **question) for question in QUESTIONS]
    assert all(plan.spans for plan in then)
    change(planner, scope)
    again = [ask(planner, scope, as_of=2, **question) for question in QUESTIONS]
    assert hashes(again) == hashes(then)
    for before, after in zip(then, again, strict=True):
        assert [span.text for span in after.spans] == [span.text for span in before.spans]
        assert nodes_of(conn, after) == nodes_of(conn, before)
        assert after.as_of == before.as_of == 2
    now = [ask(planner, scope, **question) for question in QUESTIONS]
    assert hashes(now) != hashes(then) or change is there_and_back


def test_what_is_asked_as_of_the_newest_transaction_is_what_is_asked_now(
    planner: Planner, scope: str
) -> None:
    first(planner, scope)
    change_graph(planner, scope)
    for question in QUESTIONS:
        now, newest = ask(planner, scope, **question), ask(planner, scope, as_of=3, **question)
        assert hashes([now]) == hashes([newest])
        assert now.request["as_of"] == newest.request["as_of"] == 3


def test_before_the_scope_had_vectors_there_is_nothing_to_compare(
    planner: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("bare").into(planner, scope)
    fan(0).into(planner, scope)
    plan = ask(planner, scope, as_of=1, text="at 0")
    assert (plan.spans, plan.recall["semantic"]["returned"]) == ((), 0)
    assert ask(planner, scope, text="at 0").spans


def test_the_path_of_a_reached_node_is_that_of_its_time(
    planner: Planner, conn: Connection, scope: str
) -> None:
    first(planner, scope)
    change_edges(planner, scope)
    seeds = [{"node_id": "n0"}]
    paths = [
        nodes_of(conn, ask(planner, scope, seeds=seeds, direction="out", as_of=tx))["n1"]["decay"]
        for tx in (2, 3)
    ]
    assert paths == [0.5, 0.05]


def test_the_vector_of_a_reached_node_is_that_of_its_time(
    planner: Planner, conn: Connection, scope: str
) -> None:
    first(planner, scope)
    change_graph(planner, scope)
    reached = [
        nodes_of(conn, ask(planner, scope, text="at 0", k=1, seeds=[{"node_id": "n0"}], as_of=tx))["n1"]
        for tx in (2, 3)
    ]
    assert [node["legs"] for node in reached] == [["expansion"]] * 2
    assert [round(node["similarity"], 4) for node in reached] == [round(cos(radians(a)), 4) for a in (30, 5)]


def test_a_closed_row_is_never_rewritten(planner: Planner, conn: Connection, scope: str) -> None:
    def closed(before: int) -> list[Any]:
        return conn.execute(
            "SELECT n::text FROM planner.node n WHERE scope_id = %(s)s AND tx_to <= %(t)s UNION ALL"
            " SELECT e::text FROM planner.edge e WHERE scope_id = %(s)s AND tx_to <= %(t)s UNION ALL"
            " SELECT v::text FROM planner.embedding v WHERE scope_id = %(s)s AND tx_to <= %(t)s ORDER BY 1",
            {"s": scope_id(scope), "t": before},
        ).fetchall()

    first(planner, scope)
    change_text(planner, scope)
    change_graph(planner, scope)
    kept = closed(4)
    assert len(kept) >= 4
    there_and_back(planner, scope)
    change_edges(planner, scope)
    assert closed(4) == kept
