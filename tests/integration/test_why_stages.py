"""`why` names the stage at which each thing really fell: every stage is provoked by a real plan."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
import pytest

from planner import EvidencePlan, Planner, Settings
from planner.errors import InsufficientEvidence, IntegrityError, PlannerError
from planner.ingest.media import IMPORT
from tests.integration.graph import V1

QUESTION = [1.0, 0.0]
"""Nodes lie on the unit circle: the angle to this vector, in degrees, decides similarity."""

WHOLE = Settings(**V1, max_frac_per_source=1.0)


@pytest.fixture
def planner(database_url: str) -> Iterator[Planner]:
    with Planner.connect(database_url, settings=WHOLE) as opened:
        yield opened


def ingest(planner: Planner, nodes: Mapping[str, Mapping[str, Any]], edges: Sequence[Any] = ()) -> None:
    """Write nodes with their own sources `<node>.txt`, as one transaction.

    A node is described by `text` (none: no provenance), `angle` (none: no vector) and fields of its record.
    """
    lines: list[dict[str, Any]] = []
    for node_id, given in nodes.items():
        fields = dict(given)
        text, angle = fields.pop("text", None), fields.pop("angle", None)
        spans = []
        if text is not None:
            span = {"source_id": f"{node_id}.txt", "start": 0, "end": len(text.encode())}
            lines += [
                {"record": "source", "source_id": f"{node_id}.txt", "text": text},
                {"record": "span", **span},
            ]
            spans = [span]
        lines.append({"record": "node", "node_id": node_id, "kind": "fact", "spans": spans, **fields})
        if angle is not None:
            vector = [math.cos(math.radians(angle)), math.sin(math.radians(angle))]
            lines.append({"record": "embedding", "node_id": node_id, "model": "circle", "vector": vector})
    for src, dst, confidence in edges:
        lines.append(
            {"record": "edge", "src": src, "dst": dst, "predicate": "knows", "confidence": confidence}
        )
    text = "\n".join(json.dumps(line) for line in lines)
    planner.ingest_text("s", "import.jsonl", text, media_type=IMPORT)


def ask(planner: Planner, **fields: Any) -> EvidencePlan:
    return planner.plan("s", embedding=QUESTION, **fields)


def the(planner: Planner, plan: EvidencePlan | str, what: str) -> dict[str, Any]:
    """Return the one answer about `what`."""
    ref = plan if isinstance(plan, str) else plan.ref
    why = planner.why(ref, what).to_dict()
    (answer,) = why["answers"]
    assert why["sentence"] == answer["sentence"]
    assert why["more"] == 0
    return dict(answer)


def fan(*angles: float) -> dict[str, dict[str, Any]]:
    return {f"n{i}": {"text": f"Fact number {i}.", "angle": angle} for i, angle in enumerate(angles)}


def test_a_selected_span_answers_with_its_order(planner: Planner) -> None:
    ingest(planner, fan(0, 40))
    answer = the(planner, ask(planner), "n1.txt@1:0-14")
    assert (answer["stage"], answer["order"], answer["selected"]) == ("selected", 1, 2)
    assert answer["node_id"] == "n1"


def test_what_must_excludes_is_filtered_and_nothing_later_is_said(planner: Planner) -> None:
    nodes = fan(0, 10)
    nodes["n1"]["attributes"] = {"team": "blue"}
    ingest(planner, nodes)
    must = {"not": {"field": "attributes.team", "op": "eq", "value": "blue"}}
    answer = the(planner, ask(planner, must=must, k=1, hops=0), "n1")
    assert answer["stage"] == "filtered_by_must"
    assert answer["must"] == must


def test_what_lies_outside_the_window_is_told_so_unless_it_was_matched(planner: Planner) -> None:
    nodes = fan(0, 10)
    nodes["n1"]["valid_to"] = "2020-01-01T00:00:00Z"
    ingest(planner, nodes)
    window = {"axis": "valid", "from": "2021-01-01T00:00:00Z"}
    answer = the(planner, ask(planner, window=window), "n1.txt")
    assert answer["stage"] == "outside_window"
    assert "valid time (from 2021-01-01" in answer["sentence"]
    matched = ask(planner, window=window, match={"field": "kind", "op": "eq", "value": "fact"})
    assert the(planner, matched, "n1.txt")["stage"] == "selected"


def test_a_superseded_span_names_the_version_that_came_after(planner: Planner) -> None:
    ingest(planner, fan(0))
    ingest(planner, {"n0": {"text": "Fact number nought.", "angle": 0}})
    newest, before = ask(planner), ask(planner, as_of=1)
    answer = the(planner, newest, "n0.txt@1:0-14")
    assert (answer["stage"], answer["reason"], answer["until_tx"]) == ("not_current", "superseded", 2)
    assert answer["source_version_tx"] == 2
    assert the(planner, before, "n0.txt@1:0-14")["stage"] == "selected"
    assert the(planner, newest, "n0.txt@2:0-19")["stage"] == "selected"


def test_what_came_after_the_plan_was_not_yet_known(planner: Planner) -> None:
    ingest(planner, fan(0))
    plan = ask(planner)
    ingest(planner, {"late": {"text": "A late fact.", "angle": 0}})
    answer = the(planner, plan, "late.txt")
    assert (answer["stage"], answer["reason"]) == ("not_current", "not_yet_known")
    assert (answer["since_tx"], answer["as_of"]) == (2, 1)


def test_an_erased_version_that_ended_is_told_so(planner: Planner, database_url: str) -> None:
    ingest(planner, fan(0, 5))
    ingest(planner, {"n1": {"text": "Fact number one.", "angle": 5}})
    _erase(database_url, "n1.txt", 1)
    answer = the(planner, ask(planner), "n1.txt@1:0-14")
    assert (answer["stage"], answer["reason"], answer["erased_tx"]) == ("not_current", "erased", 2)


@pytest.mark.parametrize("name", [f"n{i}" for i in range(2, 7)])
def test_the_rank_below_top_k_is_the_k_at_which_it_is_found(planner: Planner, name: str) -> None:
    ingest(planner, fan(0, 10, 50, 20, 30, 30, 70))
    answer = the(planner, ask(planner, k=2, hops=0), name)
    rank = answer["rank"]
    assert (answer["stage"], answer["k"], answer["of"]) == ("below_top_k", 2, 7)
    assert answer["expansion"]["reason"] == "off"
    assert the(planner, ask(planner, k=rank - 1, hops=0), name)["stage"] == "below_top_k"
    found = the(planner, ask(planner, k=rank, hops=0), name)
    assert found["stage"] == "selected"
    assert found["score"] == pytest.approx(0.7 * answer["similarity"] + 0.3, abs=1e-12)


def test_ranks_count_only_what_the_restriction_lets_pass(planner: Planner) -> None:
    nodes = fan(0, 10, 20, 30)
    nodes["n1"]["kind"] = "rumour"
    ingest(planner, nodes)
    must = {"field": "kind", "op": "eq", "value": "fact"}
    answer = the(planner, ask(planner, must=must, k=1, hops=0), "n3")
    assert (answer["rank"], answer["of"]) == (3, 3)


CHAIN = (("a", "b", 1.0), ("b", "c", 1.0), ("c", "d", 1.0))


@pytest.mark.parametrize(
    ("reason", "what", "limits", "enough"),
    [
        ("off", "b", {"hops": 0}, {"hops": 1}),
        ("hops", "c", {"hops": 1}, {"hops": 2}),
        ("roots", "f", {"roots": 1}, {"roots": 2}),
        ("fanout", "e", {"fanout": 1}, {"fanout": 2}),
    ],
)
def test_the_limit_that_kept_expansion_away_is_the_one_that_lets_it_in(
    planner: Planner, reason: str, what: str, limits: dict[str, int], enough: dict[str, int]
) -> None:
    nodes: dict[str, dict[str, Any]] = {name: {"text": f"About {name}."} for name in "abcdefz"}
    nodes["a"]["angle"], nodes["z"]["angle"] = 0, 10
    ingest(planner, nodes, [*CHAIN, ("a", "e", 0.5), ("z", "f", 1.0)])
    answer = the(planner, ask(planner, **limits), what)
    assert answer["stage"] == "beyond_expansion"
    assert answer["reason"] == reason
    assert the(planner, ask(planner, **enough), what)["stage"] == "selected"


def test_below_top_k_says_too_why_the_graph_did_not_help(planner: Planner) -> None:
    ingest(planner, fan(0, 10, 80), [("n1", "n2", 1.0)])
    answer = the(planner, ask(planner, k=2, roots=1), "n2")
    assert answer["stage"] == "below_top_k"
    assert answer["expansion"]["reason"] == "roots"
    assert answer["expansion"]["path"] == ["n1", "n2"]


def test_direction_is_part_of_what_expansion_could_reach(planner: Planner) -> None:
    ingest(planner, fan(0, 80), [("n1", "n0", 1.0)])
    answer = the(planner, ask(planner, k=1, direction="out"), "n1")
    assert answer["expansion"]["reason"] == "hops"
    assert the(planner, ask(planner, k=1, direction="in"), "n1")["stage"] == "selected"


def test_without_a_question_in_vectors_no_rank_is_given(planner: Planner) -> None:
    ingest(planner, fan(0, 10))
    plan = planner.plan("s", seeds=[{"node_id": "n0", "score": 0.5}])
    answer = the(planner, plan, "n1")
    assert (answer["stage"], answer["reason"], answer["semantic"]) == ("beyond_expansion", "hops", False)
    assert "rank" not in answer


def test_a_match_beyond_the_structured_limit_is_told_so(planner: Planner) -> None:
    ingest(planner, fan(0, 10))
    plan = planner.plan("s", match={"field": "kind", "op": "eq", "value": "fact"}, structured_limit=1)
    answer = the(planner, plan, "n1")
    assert answer["structured_limit"] == 1
    assert "structured_limit" in answer["sentence"]


def test_seeds_take_part_in_the_roots_by_their_own_scores(planner: Planner) -> None:
    nodes = {name: {"text": f"About {name}."} for name in ("low", "high", "by_low", "by_high")}
    ingest(planner, nodes, [("low", "by_low", 1.0), ("high", "by_high", 1.0)])
    seeds = [{"node_id": "low", "score": 0.2}, {"node_id": "high", "score": 0.9}]
    plan = planner.plan("s", seeds=seeds, roots=1)
    assert the(planner, plan, "by_high")["stage"] == "selected"
    assert the(planner, plan, "by_low")["reason"] == "roots"


def test_a_node_without_provenance_that_was_found_is_told_so(planner: Planner) -> None:
    ingest(planner, {**fan(0), "bare": {}})
    plan = ask(planner, seeds=[{"node_id": "bare"}])
    answer = the(planner, plan, "bare")
    assert (answer["ref"], answer["node_id"], answer["stage"]) == (None, "bare", "no_provenance")


def test_spans_that_max_nodes_cut_say_how_many_were_better(planner: Planner) -> None:
    ingest(planner, fan(0, 10, 20))
    answer = the(planner, ask(planner, max_nodes=1), "n2")
    assert (answer["stage"], answer["position"], answer["nodes"]) == ("cut_max_nodes", 3, 3)
    assert answer["max_nodes"] == 1


def test_spans_that_max_spans_or_min_score_cut_say_their_score(planner: Planner) -> None:
    ingest(planner, fan(0, 60))
    for limit, value in (("max_spans", 1), ("min_score", 0.9)):
        answer = the(planner, ask(planner, **{limit: value}), "n1")
        assert (answer["stage"], answer[limit]) == (f"cut_{limit}", value)
        assert answer["score"] == pytest.approx(0.65)


def test_a_duplicate_names_what_it_repeats_and_has_no_counterfactual(planner: Planner) -> None:
    lines = [
        {"record": "source", "source_id": "d.txt", "text": "One sentence about ducks."},
        {"record": "span", "source_id": "d.txt", "start": 0, "end": 25},
        {"record": "span", "source_id": "d.txt", "start": 0, "end": 24},
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    planner.ingest_text("s", "import.jsonl", text, media_type=IMPORT)
    match = {"field": "source_id", "op": "eq", "value": "d.txt"}
    why = planner.why(planner.plan("s", match=match).ref, "d.txt").to_dict()
    best, worst = why["answers"]
    assert (best["stage"], worst["stage"]) == ("selected", "duplicate")
    assert worst["duplicate_of"] == best["ref"]
    assert worst["sufficient_budget"] is worst["sufficient_max_frac"] is None


def test_what_the_budget_kept_out_is_selected_under_the_budget_that_is_said_to_suffice(
    planner: Planner,
) -> None:
    nodes = {"big": {"text": "word " * 40, "angle": 60}, **fan(0, 10)}
    ingest(planner, nodes)
    for budget, stage in ((20, "unpackable"), (64, "over_budget")):
        answer = the(planner, ask(planner, budget_tokens=budget), "big")
        assert answer["stage"] == stage
        enough = ask(planner, budget_tokens=answer["sufficient_budget"])
        assert the(planner, enough, "big")["stage"] == "selected"
        assert str(answer["sufficient_budget"]) in answer["sentence"]


def test_what_the_cap_kept_out_is_selected_under_the_share_that_is_said_to_suffice(
    database_url: str,
) -> None:
    def planned(max_frac: float) -> dict[str, Any]:
        with Planner.connect(database_url, settings=Settings(max_frac_per_source=max_frac)) as planner:
            ingest(planner, {**fan(0), "big": {"text": "word " * 20, "angle": 60}})
            return the(planner, ask(planner, budget_tokens=60), "big")

    answer = planned(0.3)
    assert answer["stage"] == "over_source_cap"
    assert answer["tokens"] > answer["cap"]
    assert planned(answer["sufficient_max_frac"])["stage"] == "selected"


def test_a_span_whose_text_is_gone_is_unsliceable(planner: Planner, database_url: str) -> None:
    ingest(planner, fan(0, 10))
    _erase(database_url, "n1.txt", 1)
    answer = the(planner, ask(planner), "n1.txt@1:0-14")
    assert (answer["stage"], answer["erased_tx"]) == ("unsliceable", 1)


def test_a_refused_plan_answers_for_every_candidate(planner: Planner) -> None:
    ingest(planner, fan(0))
    with pytest.raises(InsufficientEvidence) as refused:
        ask(planner, budget_tokens=1)
    ref = str(refused.value.plan)
    assert planner.why(ref, "n0").outcome == "refused"
    assert the(planner, ref, "n0")["stage"] == "unpackable"


def test_a_failed_plan_answers_that_it_failed_and_why(planner: Planner, database_url: str) -> None:
    ingest(planner, fan(0))
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE planner.span SET text_hash = decode(repeat('00', 31) || '01', 'hex')")
    with pytest.raises(IntegrityError) as failed:
        ask(planner)
    why = planner.why(str(failed.value.detail["plan"]), "n0").to_dict()
    assert (why["outcome"], why["answers"]) == ("failed", [])
    assert "integrity.failed" in why["sentence"]
    assert str(failed.value) in why["sentence"]


def test_a_trace_that_lost_a_span_is_an_integrity_error(planner: Planner, database_url: str) -> None:
    ingest(planner, fan(0, 10))
    plan = ask(planner)
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM planner.plan_candidate WHERE source_id = 'n1.txt'")
    with pytest.raises(PlannerError) as lost:
        planner.why(plan.ref, "n1")
    assert isinstance(lost.value, IntegrityError)


def _erase(database_url: str, source_id: str, version_tx: int) -> None:
    """Empty a source version as erasure does, at the newest transaction."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE planner.source_version SET body = NULL, erased_tx = (SELECT last_tx FROM planner.scope) "
            "WHERE source_id = %s AND version_tx = %s",
            (source_id, version_tx),
        )
