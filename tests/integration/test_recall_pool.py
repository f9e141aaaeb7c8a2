"""From legs to one pool: the largest score, what the limits cut, and how nodes become candidate spans."""

from __future__ import annotations

from typing import Any

import pytest

from planner import EvidencePlan, Planner, Settings
from planner.ingest import scope_id
from planner.tokens import ByteCounter
from tests.integration.graph import Connection, Graph, ask, at, fan, nodes_of, scores_of


def cuts_of(conn: Connection, plan: EvidencePlan) -> dict[str, Any]:
    row = conn.execute(
        "SELECT cuts FROM planner.plan WHERE scope_id = %s AND plan_id = %s",
        (scope_id(plan.ref.scope), plan.plan_id),
    ).fetchone()
    assert row is not None
    return dict(row[0])


def test_a_node_takes_its_largest_score_and_the_trace_keeps_every_leg(
    planner: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("a", 0, text="A.").node("b", 60, text="B.").edge("a", "b").into(planner, scope)
    seeds = [{"node_id": "b", "score": 0.1}]
    both = nodes_of(conn, ask(planner, scope, embedding=at(0), seeds=seeds))
    assert both["b"]["legs"] == ["structured", "semantic", "expansion"]
    assert (both["b"]["hops"], both["b"]["path"], both["b"]["decay"]) == (1, ["a", "b"], 0.5)
    assert both["b"]["score"] == 0.7 * both["b"]["similarity"] + (1 - 0.7) * 1.0  # semantic is the largest
    seeds = [{"node_id": "b", "score": 1.0}]
    assert nodes_of(conn, ask(planner, scope, embedding=at(0), seeds=seeds))["b"]["score"] == 1.0


def test_max_nodes_cuts_by_score_then_id_and_the_trace_lists_what_it_cut(
    planner: Planner, conn: Connection, scope: str
) -> None:
    fan(30, 0, 30, 30, 60).into(planner, scope)
    plan = ask(planner, scope, max_nodes=3)
    nodes = nodes_of(conn, plan)
    assert {name for name, node in nodes.items() if node["cut"] is None} == {"n1", "n0", "n2"}
    assert {name for name, node in nodes.items() if node["cut"] == "max_nodes"} == {"n3", "n4"}
    assert plan.recall["cut"]["max_nodes"] == 2
    assert scores_of(plan).keys() == {"n0.txt@1:0-14", "n1.txt@1:0-14", "n2.txt@1:0-14"}


def test_max_spans_and_min_score_cut_by_score_then_key_and_list_what_they_cut(
    planner: Planner, conn: Connection, scope: str
) -> None:
    fan(30, 0, 30, 30, 80).into(planner, scope)
    floor = ask(planner, scope, min_score=0.5)
    assert floor.recall["cut"] == {"max_nodes": 0, "min_score": 1, "max_spans": 0}
    limited = ask(planner, scope, min_score=0.5, max_spans=2)
    assert limited.recall["cut"] == {"max_nodes": 0, "min_score": 1, "max_spans": 2}
    assert scores_of(limited).keys() == {"n1.txt@1:0-14", "n0.txt@1:0-14"}
    everything = scores_of(ask(planner, scope))
    listed = {name: dict(map(tuple, refs)) for name, refs in cuts_of(conn, limited).items()}
    assert listed == {
        "min_score": {"n4.txt@1:0-14": everything["n4.txt@1:0-14"]},
        "max_spans": {ref: everything[ref] for ref in ("n2.txt@1:0-14", "n3.txt@1:0-14")},
    }


def test_a_score_at_the_floor_stays(planner: Planner, scope: str) -> None:
    fan(0, 60).into(planner, scope)
    score = scores_of(ask(planner, scope))["n1.txt@1:0-14"]
    assert len(scores_of(ask(planner, scope, min_score=score))) == 2
    assert len(scores_of(ask(planner, scope, min_score=score + 1e-12))) == 1


def test_every_span_of_a_node_is_a_candidate_and_a_span_of_two_nodes_only_one(
    planner: Planner, scope: str
) -> None:
    graph = Graph().source("s", "one two six", [(0, 3), (4, 7), (8, 11)])
    graph.node("z", 0, spans=[("s", 0, 3), ("s", 4, 7)]).node("y", 0, spans=[("s", 4, 7)])
    graph.node("x", 40, spans=[("s", 0, 3), ("s", 4, 7), ("s", 8, 11)]).into(planner, scope)
    plan = ask(planner, scope)
    candidates = {str(s.verdict.candidate.ref): s.verdict.candidate for s in plan.spans}
    assert {ref: c.node_id for ref, c in candidates.items()} == {
        "s@1:0-3": "z",  # of the two, the one with the larger score
        "s@1:4-7": "y",  # equal scores: the smaller id
        "s@1:8-11": "x",
    }
    assert (plan.stats["candidates"], plan.stats["merged"]) == (3, 3)
    assert candidates["s@1:0-3"].score == candidates["s@1:4-7"].score == 1.0


def test_of_two_nodes_of_one_score_the_smaller_id_brings_a_span_whichever_leg_found_it(
    planner: Planner, scope: str
) -> None:
    graph = Graph().source("s", "one two", [(0, 3), (4, 7)]).node("root").edge("root", "n").node("away", 0)
    graph.node("n", spans=[("s", 0, 3), ("s", 4, 7)])
    graph.node("a", spans=[("s", 0, 3)]).node("z", spans=[("s", 4, 7)]).into(planner, scope)
    seeds = [{"node_id": "root"}, {"node_id": "a", "score": 0.5}, {"node_id": "z", "score": 0.5}]
    plan = ask(planner, scope, seeds=seeds)  # n is reached, at a decay of 0.5
    assert {s.text: s.verdict.candidate.node_id for s in plan.spans} == {"one": "a", "two": "n"}


def test_a_node_without_provenance_brings_no_candidate(
    planner: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("a", 0).node("b", 10, text="B.").into(planner, scope)
    plan = ask(planner, scope)
    assert nodes_of(conn, plan).keys() == {"a", "b"}
    assert scores_of(plan).keys() == {"b.txt@1:0-2"}


def forget(conn: Connection, scope: str, source_id: str) -> None:
    conn.execute(
        "DELETE FROM planner.span WHERE scope_id = %s AND source_id = %s", (scope_id(scope), source_id)
    )


@pytest.mark.parametrize("counter", ["utf8-bytes-v1", "utf8-script-v1", "openai:o200k_base"])
def test_a_span_that_the_ledger_lacks_is_a_body_counted_by_reading(
    planner: Planner, conn: Connection, scope: str, counter: str
) -> None:
    text = "Naïve café, naturally: 你好."
    Graph().node("a", 0, text=text).node("b", 0, text=text).into(planner, scope)
    forget(conn, scope, "b.txt")
    plan = ask(planner, scope, counter=counter)
    known, body = sorted((s.verdict.candidate for s in plan.spans), key=lambda c: c.ref)
    assert (known.kind, body.kind) == ("paragraph", "body")
    assert plan.stats["kind_missing"] == 1
    assert (body.tokens, body.text_hash) == (known.tokens, known.text_hash)
    assert counter != ByteCounter().name or body.tokens == len(text.encode())


def test_a_body_that_cannot_be_read_is_unsliceable_and_the_rest_is_planned(
    planner: Planner, conn: Connection, scope: str
) -> None:
    fan(0, 0, 0).into(planner, scope)
    for name, broken in (("n1.txt", "span_end = 999"), ("n2.txt", "span_start = 1, span_end = 15")):
        forget(conn, scope, name)
        conn.execute(
            f"UPDATE planner.node_span SET {broken} WHERE scope_id = %s AND source_id = %s",
            (scope_id(scope), name),
        )
    plan = ask(planner, scope)
    assert [s.text for s in plan.spans] == ["Fact number 0."]
    assert plan.stats["unsliceable"] == 2
    assert {s.verdict.outcome.value for s in plan.rejected} == {"unsliceable"}


def test_a_span_that_cuts_a_character_is_dropped_and_selection_runs_again(
    planner: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("a", 0, text="Café").node("b", 20, text="Plain").into(planner, scope)
    sid = scope_id(scope)
    for table in ("span", "node_span"):
        conn.execute(
            f"UPDATE planner.{table} SET span_end = 4 WHERE scope_id = %s AND source_id = 'a.txt'", (sid,)
        )
    conn.execute(
        "UPDATE planner.span SET text_hash = %s WHERE scope_id = %s AND source_id = 'a.txt'", (bytes(32), sid)
    )
    plan = ask(planner, scope, counter="utf8-bytes-v1", budget_tokens=6)
    assert [s.text for s in plan.spans] == ["Plain"]  # the first choice is gone, and its place is free
    assert plan.stats["unsliceable"] == 1
    assert planner.replay(plan.ref).plan_hash == plan.plan_hash


def test_a_lowered_limit_holds_and_the_operators_fills_in_what_is_left_out(
    planner: Planner, scope: str
) -> None:
    fan(*range(8)).into(planner, scope)
    plan = ask(planner, scope, k=3, hops=0)
    defaults = Settings()
    assert plan.recall["semantic"]["kept"] == plan.stats["candidates"] == plan.request["k"] == 3
    for name in ("roots", "fanout", "structured_limit", "max_nodes", "max_spans"):
        assert plan.request[name] == getattr(defaults, name)
