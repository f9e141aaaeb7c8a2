"""Recall by `score_model: v2`: words, neighbours, mentions, speakers, all inside what restricts them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from planner import EvidencePlan, Planner, Settings
from planner.errors import RequestError
from planner.ingest import scope_id
from planner.recall.v2 import pool
from planner.recall.v2.weights import weights
from planner.store.connect import run
from tests.integration.graph import Connection, Graph, fresh_scope, nodes_of

V2 = Settings(max_frac_per_source=1.0)


@pytest.fixture(scope="module")
def v2(planner: Planner) -> Planner:
    """Give the same planner with the score model under test."""
    return Planner(replace(planner.engine, settings=V2))


def ask(planner: Planner, scope: str, text: str, **fields: Any) -> EvidencePlan:
    return planner.plan(scope, text, **{"budget_tokens": 4_096, "allow_ungrounded": True, **fields})


def terms(plan: EvidencePlan, node: str) -> dict[str, float]:
    """Return the terms of a node's score."""
    said = plan.recall["terms"]
    return {name: value / 256 for name, value in zip(said["names"], said["of"][node], strict=True)}


def crowd(graph: Graph, count: int) -> Graph:
    """Add so many texts, all nearer to the question than what is to be found by its words."""
    for i in range(count):
        graph.node(f"crowd{i:03}", 1.0 + i / 1_000, text=f"Nothing of the sort, remark {i}.")
    return graph


def test_a_word_finds_what_the_vectors_miss(v2: Planner, conn: Connection, scope: str) -> None:
    crowd(Graph().node("needle", 170, text="The zephyr valve closes at noon."), 260).into(v2, scope)
    plan = ask(v2, scope, "When does the zephyr valve close?")
    node = nodes_of(conn, plan)["needle"]
    assert node["legs"] == ["lexical"]
    assert plan.spans[0].verdict.candidate.node_id == "needle"
    assert terms(plan, "needle")["cov"] == 1.0
    assert terms(plan, "needle")["cos"] == 0.0


def test_every_leg_that_found_a_node_is_traced_and_v1_is_as_it_was(
    planner: Planner, v2: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("a", 0, text="A zephyr.").into(v2, scope)
    assert nodes_of(conn, ask(v2, scope, "zephyr"))["a"]["legs"] == ["semantic", "lexical"]
    old = ask(planner, scope, "zephyr")
    assert (old.score_model, nodes_of(conn, old)["a"]["score"]) == ("v1", 1.0)
    assert "terms" not in old.recall


def test_what_stands_beside_a_hit_joins_and_inherits(v2: Planner, conn: Connection, scope: str) -> None:
    graph = crowd(Graph(), 210)
    for i, text in enumerate(["One.", "Two.", "The zephyr valve.", "Its valve is big.", "Five.", "Six."]):
        graph.node(f"t{i}", 170, text=text)
    for i in range(5):
        graph.edge(f"t{i}", f"t{i + 1}", predicate="next")
    graph.into(v2, scope)
    plan = ask(v2, scope, "zephyr valve")
    found = nodes_of(conn, plan)
    assert {node for node in found if node[0] == "t"} == {"t0", "t1", "t2", "t3", "t4"}
    assert found["t4"]["hops"] == 2 and found["t4"]["path"] == ["t2", "t3", "t4"]
    assert terms(plan, "t3")["prev"] > 0 and terms(plan, "t3")["nbnew"] > 0
    assert found["t3"]["score"] > found["t4"]["score"]
    alone = nodes_of(conn, ask(v2, scope, "zephyr valve", hops=0))
    assert {node for node in alone if node[0] == "t"} == {"t2", "t3"}


def test_a_mention_leads_to_the_source_that_has_the_title(v2: Planner, conn: Connection, scope: str) -> None:
    v2.ingest_text(scope, "keeper", "The lamp was lit by Ada Brandt.", title="Lamp")
    v2.ingest_text(scope, "ada", "Born in Tromsø.\n\nDied in Bergen.", title="Ada Brandt")
    v2.ingest_text(scope, "other", "Born in Oslo.", title="Carl Dahl")
    plan = ask(v2, scope, "Who lit the lamp?", must={"field": "kind", "op": "eq", "value": "paragraph"})
    by_text = {v2.slice_text(scope, str(s.verdict.candidate.ref)): s.verdict.candidate for s in plan.spans}
    assert terms(plan, by_text["Born in Tromsø."].node_id or "")["mention"] > 0
    assert terms(plan, by_text["Born in Oslo."].node_id or "")["mention"] == 0
    assert by_text["Born in Tromsø."].score > by_text["Born in Oslo."].score


def test_a_mentioned_conversation_opens_with_its_first_turns_also_where_it_grew(
    v2: Planner, conn: Connection, scope: str
) -> None:
    turns = [{"speaker": "Mira", "content": f"Word {i}.", "id": str(i)} for i in range(7)]
    v2.ingest_conversation(scope, "talk", turns[:4], title="Harbour Talk")
    for turn in turns[4:]:
        v2.append(scope, "talk", [turn])
    v2.ingest_text(scope, "note", "The zephyr valve came up in the Harbour Talk.")
    for i in range(8):  # so that the best five are no turns
        v2.ingest_text(scope, f"valve{i}", f"A valve, remark {i}.")
    plan = ask(v2, scope, "zephyr valve")
    led = {node for node, found in nodes_of(conn, plan).items() if "expansion" in found["legs"]}
    said = {s.text for s in plan.spans if s.verdict.candidate.node_id in led}
    assert said == {"Word 0.", "Word 1.", "Word 2."}


def test_a_name_that_a_hit_shares_with_another_source_leads_there(
    v2: Planner, conn: Connection, scope: str
) -> None:
    graph = crowd(Graph().node("hit", 170, text="The zephyr valve was made by Ada Brandt."), 260)
    graph.node("near", 170, text="In Bergen lived Ada Brandt, of whom much more is to be said.")
    graph.node("apart", 170, text="In Bergen lived Ada, Brandt did not.").into(v2, scope)
    plan = ask(v2, scope, "zephyr valve")
    assert terms(plan, "near")["names"] > 0
    assert terms(plan, "apart")["names"] == 0
    assert nodes_of(conn, plan)["near"]["path"] == ["hit", "near"]
    assert "expansion" not in nodes_of(conn, ask(v2, scope, "zephyr valve", hops=0))["near"]["legs"]


def test_an_edge_of_the_callers_own_counts_as_a_mention(v2: Planner, scope: str) -> None:
    graph = (
        Graph().node("hit", text="The zephyr valve.").node("linked", text="Noon.").node("not", text="Dusk.")
    )
    graph.edge("hit", "linked", 0.5).into(v2, scope)
    plan = ask(v2, scope, "zephyr valve")
    assert terms(plan, "linked")["mention"] == 0.5
    assert terms(plan, "not")["mention"] == 0.0


def test_a_named_speaker_counts_and_another_one_is_against(v2: Planner, scope: str) -> None:
    talk = [
        {"speaker": "Mira", "content": "The picnic was lovely."},
        {"speaker": "Tomas", "content": "The picnic was dull."},
    ]
    v2.ingest_conversation(scope, "talk", talk)
    plan = ask(v2, scope, "How was the picnic for Mira?")
    said = {s.text: terms(plan, s.verdict.candidate.node_id or "")["spk"] for s in plan.spans}
    assert said == {"The picnic was lovely.": 1.0, "The picnic was dull.": -1.0}


def test_a_restriction_holds_inside_every_leg_and_hop(v2: Planner, conn: Connection, scope: str) -> None:
    graph = crowd(Graph(), 210)
    red: dict[str, Any] = {"attributes": {"team": "red"}}
    blue: dict[str, Any] = {"attributes": {"team": "blue"}}
    for i in range(220):
        graph.node(f"red{i:03}", text="The zephyr valve, the zephyr valve.", **red)
    graph.node("blue", text="A zephyr valve of which much more is to be said in very many words.", **blue)
    graph.node("next", text="Aside.", **red).edge("blue", "next", predicate="next").edge("blue", "red001")
    graph.into(v2, scope)
    must = {"field": "attributes.team", "op": "eq", "value": "blue"}
    plan = ask(v2, scope, "zephyr valve", must=must)
    assert nodes_of(conn, plan).keys() == {"blue"}
    assert terms(plan, "blue")["nbnew"] == 0.0


def test_a_window_bounds_the_lexical_leg(v2: Planner, conn: Connection, scope: str) -> None:
    early: dict[str, Any] = {"valid_from": "2020-01-01T00:00:00Z", "valid_to": "2021-01-01T00:00:00Z"}
    late: dict[str, Any] = {"valid_from": "2024-01-01T00:00:00Z"}
    Graph().node("early", text="A zephyr.", **early).node("late", text="A zephyr.", **late).into(v2, scope)
    plan = ask(v2, scope, "zephyr", window={"from": "2023-01-01T00:00:00Z"})
    assert nodes_of(conn, plan).keys() == {"late"}


def test_a_plan_as_of_then_is_what_it_was_then(v2: Planner, scope: str) -> None:
    Graph().node("a", 10, text="A zephyr valve.").node("b", 20, text="A valve.").into(v2, scope)
    then = ask(v2, scope, "zephyr valve")
    changed = Graph().node("a", 10, text="A zephyr valve, replaced.")
    changed.node("c", 30, text="Zephyr, zephyr, valve.").into(v2, scope)
    now, again = ask(v2, scope, "zephyr valve"), ask(v2, scope, "zephyr valve", as_of=then.as_of)
    assert again.plan_hash == then.plan_hash != now.plan_hash
    assert again.pool_hash == then.pool_hash


def test_two_tenants_know_nothing_of_each_other(v2: Planner, conn: Connection, scope: str) -> None:
    other = fresh_scope()
    Graph().node("a", text="A zephyr valve.").into(v2, scope)
    before = ask(v2, scope, "zephyr valve")
    Graph().node("a", text="Another zephyr valve.").node("b", text="zephyr").into(v2, other)
    after = ask(v2, scope, "zephyr valve")
    assert (after.plan_hash, after.recall["terms"]) == (before.plan_hash, before.recall["terms"])
    assert nodes_of(conn, after).keys() == {"a"}


def test_a_seed_keeps_its_score_where_that_is_larger(v2: Planner, conn: Connection, scope: str) -> None:
    Graph().node("seed", text="Aside.").node("a", text="A zephyr.").into(v2, scope)
    plan = ask(v2, scope, "zephyr", seeds=[{"node_id": "seed", "score": 0.75}])
    assert nodes_of(conn, plan)["seed"]["score"] == 0.75


def test_a_question_without_words_is_answered_by_its_vector(
    v2: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("a", 10, text="A zephyr.").into(v2, scope)
    plan = v2.plan(scope, embedding=[1.0, 0.0])
    assert nodes_of(conn, plan)["a"]["legs"] == ["semantic"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"text": "What is the of and to?"}, {"a", "b"}),
        ({"text": "?!"}, {"a", "b"}),
        ({"text": "xylophone"}, {"a", "b"}),
        ({"text": "xylophone", "must": {"field": "source_id", "op": "eq", "value": "b.txt"}}, {"b"}),
        ({"match": {"field": "source_id", "op": "eq", "value": "a.txt"}}, {"a"}),
        ({"match": {"field": "source_id", "op": "eq", "value": "neither"}}, set()),
    ],
)
def test_what_no_word_finds_is_still_planned(
    v2: Planner, conn: Connection, scope: str, asked: dict[str, Any], found: set[str]
) -> None:
    Graph().node("a", 10, text="A zephyr.").node("b", 20, text="Aside.").into(v2, scope)
    plan = v2.plan(scope, budget_tokens=100, allow_ungrounded=True, **asked)
    assert nodes_of(conn, plan).keys() == found
    assert plan.stats["selected"] == len(found)
    v2.replay(plan.ref)


def test_a_scope_that_was_emptied_gives_an_empty_plan(v2: Planner, scope: str) -> None:
    v2.ingest_text(scope, "a.md", "A zephyr.")
    v2.erase(scope, "a.md")
    for asked in ({"text": "zephyr"}, {"embedding": [1.0, 0.0]}):
        plan = v2.plan(scope, budget_tokens=100, allow_ungrounded=True, **asked)
        assert (plan.spans, plan.rejected) == ((), ())


def test_min_score_cuts_by_the_mapped_score(v2: Planner, scope: str) -> None:
    Graph().node("a", 10, text="A zephyr.").node("b", 20, text="Aside.").into(v2, scope)
    scores = {
        span.verdict.candidate.node_id: span.verdict.candidate.score
        for span in ask(v2, scope, "zephyr").spans
    }
    assert 0 < scores["b"] < scores["a"] < 1
    for floor, kept in ((scores["b"], 2), (scores["a"], 1), (1.0, 0)):
        assert ask(v2, scope, "zephyr", min_score=floor).stats["selected"] == kept


def test_a_scope_without_a_lexical_index_is_told_how_to_build_one(v2: Planner, scope: str) -> None:
    Graph().node("a", text="A zephyr.").into(v2, scope)
    identity = scope_id(scope)
    with v2.engine.store.scoped(identity, "writer") as conn:
        run(conn, "mark_lexical", {"scope_id": identity, "lexical": None})
    with pytest.raises(RequestError, match=f"planner scope index {scope} --lexical"):
        ask(v2, scope, "zephyr")
    v2.build_lexical_index(scope)
    assert ask(v2, scope, "zephyr").stats["selected"] == 1


def test_a_plan_is_the_same_twice_replayed_replanned_and_verified(v2: Planner, scope: str) -> None:
    crowd(Graph().node("needle", 170, text="The zephyr valve closes at noon."), 30).into(v2, scope)
    one, two = ask(v2, scope, "zephyr valve"), ask(v2, scope, "zephyr valve")
    assert (one.plan_hash, one.pool_hash) == (two.plan_hash, two.pool_hash)
    v2.replay(one.ref)
    found = v2.replan(one.ref)
    assert found.identical and not found.drifts and not found.notes
    assert v2.verify_plan(one.ref).ok


def test_a_plan_of_either_model_is_made_again_by_its_own(
    planner: Planner, v2: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("a", 10, text="A zephyr.").node("b", 20, text="Aside.").into(v2, scope)
    old, new = ask(planner, scope, "zephyr"), ask(v2, scope, "zephyr")
    before = ask(planner, scope, "zephyr")  # there was a choice
    conn.execute(
        "UPDATE planner.plan SET config = config - 'score_model' WHERE plan_id = %s", (before.plan_id,)
    )
    for asking, ref in ((v2, old.ref), (planner, new.ref), (v2, before.ref)):
        found = asking.replan(ref)
        assert found.identical
        assert any("score_model was" in row for drift in found.drifts for row in drift.evidence)


def test_other_weights_are_a_drift_of_the_code(
    v2: Planner, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Graph().node("a", 10, text="A zephyr valve.").node("b", 20, text="Aside.").into(v2, scope)
    plan, ours = ask(v2, scope, "zephyr valve"), weights()
    for changed in (ours, replace(ours, of={**ours.of, "cov": 1})):
        other = replace(changed, version="v2/0")
        monkeypatch.setattr(pool, "weights", {None: other}.__getitem__)
        found = v2.replan(plan.ref)
        assert found.identical == (changed is ours)
        (drift,) = found.notes if found.identical else found.drifts
        assert drift.drift == "code"
        assert f"score_weights was {ours.name}, is {other.name}" in drift.evidence


def test_why_says_what_a_score_is_made_of(v2: Planner, planner: Planner, scope: str) -> None:
    Graph().node("a", 10, text="A zephyr valve.").node("b", 20, text="Aside.").into(v2, scope)
    (answer,) = v2.why(ask(v2, scope, "zephyr valve").ref, "a").answers
    assert "Its score of" in answer.sentence
    assert "share of the question's words 1.56 × 1.00" in answer.sentence
    (old,) = v2.why(ask(planner, scope, "zephyr valve").ref, "a").answers
    assert "Its score of" not in old.sentence


_ELSEWHERE = """
import sys
from planner import Planner, Settings
from tests.integration.graph import circle_embedder
settings = Settings(score_model="v2", plan_model="v2", max_frac_per_source=1.0)
with Planner.connect(sys.argv[1], settings=settings, embedder=circle_embedder()) as planner:
    plan = planner.plan(sys.argv[2], "zephyr valve", budget_tokens=4096)
    print(plan.plan_hash, plan.pool_hash)
"""


def test_another_process_decides_the_same(v2: Planner, shared_database_url: str, scope: str) -> None:
    crowd(Graph().node("needle", 170, text="The zephyr valve closes at noon."), 30).into(v2, scope)
    command = [sys.executable, "-c", _ELSEWHERE, shared_database_url, scope]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    plan = ask(v2, scope, "zephyr valve")
    assert said == [plan.plan_hash, plan.pool_hash]
