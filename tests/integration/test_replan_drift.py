"""A plan made again is the same, or the class of what drifted is named with the rows that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from planner import EvidencePlan, InsufficientEvidence, Planner
from planner.errors import IntegrityError, RequestError, UnknownCounter, UnknownPlan
from planner.ingest import scope_id
from planner.pipeline.explain import read_record
from planner.tokens import CallableCounter
from planner.trace.drift import Replan
from planner.types import Selection
from tests.integration.graph import (
    Connection,
    Graph,
    ask,
    at,
    circle,
    circle_embedder,
    fan,
    fresh_scope,
    rows_of,
)
from tests.integration.tampering import other, rehashed, tampering


def harbour() -> Graph:
    """Return a graph in which every leg finds something, at distances that leave no tie."""
    graph = fan(0, 20, 40, 60)
    graph.node("near", 85, text="Reached by one hop.").node("far", 88, text="Reached by two.")
    return graph.edge("n0", "near", 0.9).edge("near", "far", 0.8).edge("n1", "far", 0.3)


def planned(planner: Planner, scope: str, **fields: Any) -> EvidencePlan:
    harbour().into(planner, scope)
    return ask(planner, scope, **{"k": 3, **fields})


def classes(found: Replan) -> list[str]:
    return [drift.drift.value for drift in found.drifts]


def evidence(found: Replan, drift: str) -> tuple[str, ...]:
    return next(d.evidence for d in found.drifts if d.drift == drift)


def test_a_plan_made_again_is_the_same_and_writes_nothing(
    planner: Planner, conn: Connection, scope: str
) -> None:
    plan = planned(planner, scope)
    before = rows_of(conn, scope)
    Graph().node("n0", 90, text="Another text.").into(planner, scope)  # later transactions do not matter
    found = planner.replan(plan.ref)
    assert (found.identical, found.drifts, found.notes, found.changes) == (True, (), (), ())
    assert found.hashes_again == (plan.plan_hash, plan.pool_hash)
    assert rows_of(conn, scope)["plan"] == before["plan"]
    kept = planner.replan(plan.ref, keep=True)
    assert kept.again is not None
    assert planner.load(kept.again).plan_hash == plan.plan_hash
    assert rows_of(conn, scope)["plan"] == before["plan"] + 1


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "at 10", "parts": ["at 50"]},
        {"match": {"field": "kind", "op": "eq", "value": "fact"}, "structured_limit": 2},
        {"seeds": [{"node_id": "near", "score": 0.4}], "hops": 1},
        {"min_score": 0.8, "max_spans": 2, "max_nodes": 4, "plan_model": "v2"},
        {"counter": "openai:o200k_base", "budget_tokens": 12},
        {"must": {"field": "label", "op": "eq", "value": "nobody"}},
    ],
)
def test_every_kind_of_request_is_made_again_to_the_same_hashes(
    planner: Planner, scope: str, fields: dict[str, Any]
) -> None:
    plan = planned(planner, scope, **fields)
    assert (
        planner.replan(plan.ref).to_dict() | {"drifts": [], "notes": []} == planner.replan(plan.ref).to_dict()
    )
    assert planner.replan(plan.ref).identical


def test_a_refusal_is_made_again_too(planner: Planner, scope: str) -> None:
    fan(0, 10).into(planner, scope)
    with pytest.raises(InsufficientEvidence) as caught:
        planner.plan(scope, embedding=at(0), budget_tokens=2)
    found = planner.replan(str(caught.value.plan))
    assert (found.identical, found.error, found.drifts) == (True, None, ())


SOURCE = {
    "bytes": (
        "UPDATE planner.source_version SET body = convert_to('Fact number X.', 'UTF8')"
        " WHERE source_id = 'n1.txt' AND scope_id = %s",
        "n1.txt@1:0-14: its bytes have the hash",
    ),
    "span ledger": (
        "UPDATE planner.span SET text_hash = sha256('x') WHERE source_id = 'n1.txt' AND scope_id = %s",
        "n1.txt@1:0-14: the span ledger has the hash",
    ),
    "kind": (
        "UPDATE planner.span SET kind = 'heading' WHERE source_id = 'n1.txt' AND scope_id = %s",
        "n1.txt@1:0-14: the span ledger calls it heading, it was paragraph",
    ),
    "class": (
        "UPDATE planner.source SET class = 'cache' WHERE source_id = 'n1.txt' AND scope_id = %s",
        "n1.txt@1:0-14: its source is of class cache, it was truth",
    ),
    "erased": (
        "UPDATE planner.source_version SET body = NULL, erased_tx = 7"
        " WHERE source_id = 'n1.txt' AND scope_id = %s",
        "n1.txt@1:0-14: its text was erased by transaction 7",
    ),
}


@pytest.mark.parametrize("how", SOURCE)
def test_source_drift_names_the_span(planner: Planner, conn: Connection, scope: str, how: str) -> None:
    plan = planned(planner, scope)
    statement, said = SOURCE[how]
    tampering(conn, scope)(statement)
    found = planner.replan(plan.ref)
    assert (found.identical, classes(found)) == (False, ["source"])
    (row,) = evidence(found, "source")
    assert row.startswith(said)


def test_an_erased_source_is_source_drift_though_its_vectors_are_gone_as_well(
    planner: Planner, scope: str
) -> None:
    plan = planned(planner, scope)
    planner.erase(scope, "n1.txt")
    found = planner.replan(plan.ref)
    assert classes(found) == ["source"]
    assert [c.reasons[0] for c in found.changes if str(c.ref) == "n1.txt@1:0-14"] == ["absent_from_pool"]


GRAPH = {
    "a node is gone": (
        "DELETE FROM planner.node WHERE node_id = 'near' AND scope_id = %s",
        "node near: was found by expansion, is not there as of 1",
    ),
    "a node is closed": (
        "UPDATE planner.node SET tx_from = 2, tx_to = 3 WHERE node_id = 'far' AND scope_id = %s",
        "node far: was found by expansion, is not there as of 1",
    ),
    "an edge is weaker": (
        "UPDATE planner.edge SET confidence = 0.5 WHERE dst = 'near' AND scope_id = %s",
        "node near: was reached by n0 > near at decay 0.45, is reached by n0 > near at decay 0.25",
    ),
    "an edge is gone": (
        "DELETE FROM planner.edge WHERE dst = 'near' AND scope_id = %s",
        "node near: was reached by n0 > near at decay 0.45, is",
    ),
    "provenance is gone": (
        "DELETE FROM planner.node_span WHERE node_id = 'near' AND scope_id = %s",
        "node near: near.txt@1:0-19 was among its provenance, is not",
    ),
    "provenance is added": (
        "INSERT INTO planner.node_span SELECT scope_id, 'near', 1, source_id, version_tx, 0, 4"
        " FROM planner.source_version WHERE source_id = 'near.txt' AND scope_id = %s",
        "node near: near.txt@1:0-4 was not among its provenance, is",
    ),
}


@pytest.mark.parametrize("how", GRAPH)
def test_graph_drift_names_the_node(planner: Planner, conn: Connection, scope: str, how: str) -> None:
    plan = planned(planner, scope)
    statement, said = GRAPH[how]
    tampering(conn, scope)(statement)
    found = planner.replan(plan.ref)
    assert (found.identical, classes(found)) == (False, ["graph"])
    assert any(row.startswith(said) for row in evidence(found, "graph")), evidence(found, "graph")


def test_a_node_that_slipped_in_is_graph_drift(planner: Planner, conn: Connection, scope: str) -> None:
    plan = planned(planner, scope)
    Graph().node("ghost", 5, text="Was never there.").into(planner, scope)
    tamper = tampering(conn, scope)
    for table in ("node", "embedding"):
        tamper(f"UPDATE planner.{table} SET tx_from = 1 WHERE node_id = 'ghost' AND scope_id = %s")
    tamper("UPDATE planner.node_span SET node_tx_from = 1 WHERE node_id = 'ghost' AND scope_id = %s")
    found = planner.replan(plan.ref)
    assert classes(found) == ["graph"]
    assert "node ghost: was not found, is found by semantic" in evidence(found, "graph")


def test_embedding_drift_names_the_node_whose_vector_changed_and_not_those_that_move(
    planner: Planner, conn: Connection, scope: str
) -> None:
    plan = planned(planner, scope)
    tamper = tampering(conn, scope)
    tamper("UPDATE planner.embedding SET vec = '[0,1]' WHERE node_id = 'n1' AND scope_id = %s")
    found = planner.replan(plan.ref)
    assert classes(found) == ["embedding"]
    (row,) = evidence(found, "embedding")
    assert row.startswith("node n1: similarity was 0.93")
    assert row.endswith(", is 0.0")
    tamper("DELETE FROM planner.embedding WHERE node_id = 'n1' AND scope_id = %s")
    (row,) = evidence(planner.replan(plan.ref), "embedding")
    assert row.endswith("it has no vector")


def test_an_embedder_that_answers_otherwise_is_embedding_drift(planner: Planner, scope: str) -> None:
    plan = planned(planner, scope, text="at 0")

    @dataclass(frozen=True)
    class Turned:
        name: str = "circle"
        revision: str = ""
        dimensions: int = 2

        def embed(self, texts: Sequence[str]) -> Any:
            return circle([text.replace("at 0", "at 30") for text in texts])

    found = other(planner, embedder=Turned()).replan(plan.ref)
    assert classes(found) == ["embedding"]
    assert evidence(found, "embedding") == (
        "the question's vectors were 1 of 2 dimensions (1.000000, 0.000000, …), "
        "are 1 of 2 dimensions (0.866025, 0.500000, …)",
    )
    unknown = other(planner, embedder=replace(Turned(), name="square")).replan(plan.ref)
    assert (unknown.identical, unknown.drifts) == (True, ())  # the recorded vectors serve
    (note,) = unknown.notes
    assert note.drift == "embedding"
    assert "made by circle" in note.evidence[0]


def test_policy_drift_says_what_todays_settings_would_change(planner: Planner, scope: str) -> None:
    plan = planned(planner, scope, budget_tokens=12)
    today = other(planner, alpha=0.1, max_frac_per_source=0.5)
    found = today.replan(plan.ref)
    assert (found.identical, classes(found)) == (True, ["policy"])
    made = today.plan({k: v for k, v in plan.request.items() if v is not None})
    assert set(evidence(found, "policy")[:2]) == {
        "alpha was 0.7, is 0.1",
        "max_frac_per_source was 1.0, is 0.5",
    }
    assert str(made.plan_hash) in evidence(found, "policy")[2]
    harmless = other(planner, exact_limit=1).replan(plan.ref)
    assert (harmless.drifts, [note.drift.value for note in harmless.notes]) == ((), ["policy"])
    refused = other(planner, roots=2).replan(plan.ref)
    assert classes(refused) == ["policy"]
    assert "roots = 16 is above the operator's limit 2" in evidence(refused, "policy")[0]


def counting(planner: Planner, per_token: int) -> Planner:
    counter = CallableCounter("mine", "exact", lambda text: len(text) // per_token)
    settings = planner.engine.settings
    return Planner.from_pool(
        planner.engine.store.pool, settings=settings, embedder=circle_embedder(), counters={"mine": counter}
    )


def test_tokenizer_drift_names_the_span_and_both_counts(
    planner: Planner, conn: Connection, scope: str
) -> None:
    harbour().into(planner, scope)
    plan = ask(counting(planner, 2), scope, counter="mine")
    assert counting(planner, 3).replan(plan.ref).identical  # the counts are cached
    tampering(conn, scope)("DELETE FROM planner.token_count WHERE scope_id = %s")
    found = counting(planner, 3).replan(plan.ref)
    assert classes(found) == ["tokenizer"]
    assert "n0.txt@1:0-14: mine counted 7 tokens, counts 4" in evidence(found, "tokenizer")
    broken = counting(planner, 0).replan(plan.ref)
    assert classes(broken) == ["tokenizer"]
    assert "counter 'mine' failed: ZeroDivisionError" in evidence(broken, "tokenizer")[0]
    with pytest.raises(UnknownCounter):
        planner.replan(plan.ref)


def as_another_version_would(planner: Planner, conn: Connection, plan: EvidencePlan) -> None:
    """Rewrite a plan's trace, hashes and all, as code would that weighs the last of its pool otherwise."""
    scope = scope_id(plan.ref.scope)
    with planner.engine.store.scoped(scope, "reader") as reader:
        record = read_record(reader, scope, plan.ref)
    stored: Selection = record.selection
    last = stored.verdicts[-1]
    weighed = last._replace(weight=last.weight / 2)
    verdicts = (*stored.verdicts[:-1], weighed)
    selected = tuple(weighed if v is last or v == last else v for v in stored.selected)
    hashes = rehashed(replace(record, selection=replace(stored, verdicts=verdicts, selected=selected)))
    bits = int(np.array(weighed.weight).view(np.int64))
    conn.execute(
        "UPDATE planner.plan_candidate SET weight = %s, weight_bits = %s"
        " WHERE rank = %s AND plan_id = %s AND scope_id = %s",
        (weighed.weight, bits, len(verdicts) - 1, plan.plan_id, scope),
    )
    conn.execute(
        "UPDATE planner.plan SET plan_hash = %s, pool_hash = %s,"
        ' versions = versions || \'{"planner": "0.0.1"}\' WHERE plan_id = %s AND scope_id = %s',
        (*hashes, plan.plan_id, scope),
    )


def test_code_drift_is_what_nothing_else_explains(planner: Planner, conn: Connection, scope: str) -> None:
    plan = planned(planner, scope)
    as_another_version_would(planner, conn, plan)
    found = planner.replan(plan.ref)
    assert classes(found) == ["code"]
    versions, difference = evidence(found, "code")
    assert versions.startswith("planner was 0.0.1, is ")
    assert difference.startswith("weight of far.txt@1:0-15 was ")


def test_another_version_of_the_code_that_decides_the_same_is_a_note(
    planner: Planner, conn: Connection, scope: str
) -> None:
    plan = planned(planner, scope)
    tampering(conn, scope)(
        'UPDATE planner.plan SET versions = versions || \'{"postgresql": "15.0"}\' WHERE scope_id = %s'
    )
    found = planner.replan(plan.ref)
    assert (found.identical, found.drifts) == (True, ())
    assert found.notes[0].evidence[0].startswith("postgresql was 15.0, is ")


def test_a_trace_that_was_changed_is_not_compared_with_anything(
    planner: Planner, conn: Connection, scope: str
) -> None:
    plan = planned(planner, scope)
    tampering(conn, scope)(
        "UPDATE planner.plan_candidate SET tokens = tokens + 1 WHERE rank = 0 AND scope_id = %s"
    )
    with pytest.raises(IntegrityError, match=r"plan_hash: .* is stored, the stored rows have"):
        planner.replan(plan.ref)


@dataclass(frozen=True)
class Reversed:
    """A rescorer that prefers what recall found last."""

    name: str = "reversed"

    def score(self, question: str, candidates: Sequence[Any], texts: Sequence[str]) -> list[float]:
        return [1.0 - candidate.score for candidate in candidates]


def test_scores_of_a_caller_need_the_callers_rescorer(planner: Planner, scope: str) -> None:
    harbour().into(planner, scope)
    plan = planner.plan(scope, embedding=at(0), rescore=Reversed())
    assert planner.replan(plan.ref, rescore=Reversed()).identical
    for wrong in (None, Reversed("another")):
        with pytest.raises(RequestError, match="caller:reversed"):
            planner.replan(plan.ref, rescore=wrong)
    own = ask(planner, scope)
    with pytest.raises(RequestError, match="of v1, not of caller:reversed"):
        planner.replan(own.ref, rescore=Reversed())


def test_what_cannot_be_made_again_is_refused(planner: Planner, conn: Connection, scope: str) -> None:
    plan = planned(planner, scope)
    with pytest.raises(UnknownPlan):
        planner.replan(f"{fresh_scope()}:{plan.plan_id}")
    tampering(conn, scope)(
        "UPDATE planner.plan SET outcome = 'failed', error_code = 'x', plan_hash = NULL, pool_hash = NULL"
        " WHERE scope_id = %s"
    )
    with pytest.raises(RequestError, match="failed before it had a pool"):
        planner.replan(plan.ref)
