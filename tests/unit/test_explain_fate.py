"""The stage that is told is the first at which the best of a span's nodes fell."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import IntegrityError
from planner.request import PlanRequest
from planner.selection.budget import resolve_budget
from planner.selection.counterfactual import Counterfactual
from planner.selection.select import select
from planner.settings import Settings
from planner.trace.explain import fate, missed, ranks
from planner.trace.findings import Findings
from planner.trace.record import Record, policy_from
from planner.trace.sentences import failed, sentence, summary
from planner.trace.why import DEPTH, Carrier, Fate, Missed, Ranked, Stage, Target
from planner.types import OPEN_TX, Candidate, PlanRef, SpanRef

SPAN = SpanRef("a.md", 1, 0, 10)
SETTINGS = Settings()
AS_OF = 5


def findings(
    candidates: tuple[Candidate, ...] = (), nodes: tuple[tuple[Any, ...], ...] = (), **given_fields: Any
) -> Findings:
    """Return a recorded plan; `nodes` are rows of `plan_nodes`, `cuts` may be among the fields."""
    cuts: Mapping[str, Any] = given_fields.pop("cuts", {})
    request = PlanRequest.parse({"scope": "s", "text": "q", **given_fields}).effective(SETTINGS)
    policy = policy_from(SETTINGS.to_dict(), "v1")
    budget = resolve_budget(100, counter="c", bound="exact", max_frac=1.0)
    record = Record(
        ref=PlanRef("s", "00000000-0000-7000-8000-000000000000"),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        outcome="planned",
        error=None,
        plan_hash=None,
        pool_hash=None,
        score_model="v1",
        as_of=AS_OF,
        request=request.to_dict(),
        policy=policy,
        config=SETTINGS.to_dict(),
        query_vectors=[[1.0, 0.0]],
        selection=select(candidates, policy, budget),
        recall={"method": "exact"},
        cuts=cuts,
        timings={},
        versions={},
    )
    return Findings.from_rows(record, nodes)


def row(
    node_id: str, legs: tuple[str, ...], score: float, similarity: float | None = None, cut: str | None = None
) -> tuple[Any, ...]:
    return (node_id, list(legs), score, similarity, None, None, None, cut)


def carrier(node_id: str = "n", **changed: Any) -> Carrier:
    return replace(Carrier(node_id, 1, OPEN_TX, True, True, False), **changed)


NEVER = carrier("must", passes_must=False, restricted_in=False)
OUTSIDE = carrier("window", restricted_in=False)
ENDED = carrier("ended", tx_to=3)
LATE = carrier("late", tx_from=6)
FAR = carrier("far")
CUT = carrier("cut")
STAGES = {
    NEVER: Stage.FILTERED_BY_MUST,
    OUTSIDE: Stage.OUTSIDE_WINDOW,
    ENDED: Stage.NOT_CURRENT,
    LATE: Stage.NOT_CURRENT,
    FAR: Stage.BELOW_TOP_K,
    CUT: Stage.CUT_MAX_NODES,
}
BEYOND = Missed({"far": Ranked(0.25, 70, 100)})


@pytest.mark.parametrize(
    "carriers", list(itertools.permutations(STAGES, 3)), ids=lambda group: "-".join(c.node_id for c in group)
)
def test_of_the_nodes_that_carry_a_span_the_one_that_came_furthest_decides(
    carriers: tuple[Carrier, ...],
) -> None:
    found = findings(nodes=(row("cut", ("semantic",), 0.4, 0.1, "max_nodes"),))
    told = fate(Target(SPAN, carriers=carriers, source_tx=1), found, BEYOND)
    assert told.stage is max((STAGES[c] for c in carriers), key=DEPTH.__getitem__)


def test_only_nodes_that_could_have_been_found_are_looked_up() -> None:
    found = findings(nodes=(row("cut", ("semantic",), 0.4, 0.1, "max_nodes"),))
    assert missed(found, [Target(SPAN, carriers=tuple(STAGES))]) == {"far"}


def test_an_older_version_of_a_found_node_is_not_taken_for_it() -> None:
    found = findings(nodes=(row("n", ("semantic",), 0.9, 0.9),))
    told = fate(Target(SPAN, carriers=(carrier(tx_to=AS_OF),), source_tx=AS_OF), found, Missed())
    assert told.facts["reason"] == "superseded"


def test_a_found_node_whose_span_the_trace_lacks_is_an_integrity_error() -> None:
    found = findings(nodes=(row("n", ("semantic",), 0.9, 0.9),))
    with pytest.raises(IntegrityError):
        fate(Target(SPAN, carriers=(carrier(),)), found, Missed())


def test_a_span_in_the_pool_is_told_by_its_outcome_whatever_carries_it() -> None:
    pool = (Candidate("a.md", 1, 0, 10, "paragraph", "truth", 0.5, 7, node_id="n"),)
    told = fate(Target(SPAN, carriers=(NEVER,)), findings(pool), Missed())
    assert (told.stage, told.node_id, told.facts["tokens"]) == (Stage.SELECTED, "n", 7)


def test_a_ledger_span_that_no_node_has_is_without_provenance() -> None:
    assert fate(Target(SPAN), findings(), Missed()).stage is Stage.NO_PROVENANCE


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_a_rank_counts_the_better_and_of_equals_the_smaller_ids(sims: list[int], data: st.DataObject) -> None:
    ids = data.draw(st.permutations([f"n{i:02}" for i in range(len(sims))]))
    values = np.array(sims) / 4
    wanted = data.draw(st.sampled_from(ids))
    own = values[ids.index(wanted)]
    before = sum(v > own or (v == own and i < wanted) for i, v in zip(ids, values, strict=True))
    assert ranks(ids, values, frozenset({wanted})) == {wanted: Ranked(float(own), before + 1, len(ids))}


@pytest.mark.parametrize(
    ("fields", "nodes", "roots"),
    [
        # a match scores 1.0, whatever its similarity
        ({"match": {"field": "kind", "op": "eq", "value": "x"}},
         (row("m", ("structured",), 1.0), row("s", ("semantic",), 0.93, 0.9)), ("m", "s")),
        # a seed scores its own, also where expansion reached it with more
        ({"seeds": [{"node_id": "d", "score": 0.2}]},
         (row("d", ("structured", "expansion"), 0.5), row("s", ("semantic",), 0.37, 0.1)), ("s", "d")),
        # the larger of two legs counts
        ({"seeds": [{"node_id": "d", "score": 0.2}]},
         (row("d", ("structured", "semantic"), 0.93, 0.9), row("s", ("semantic",), 0.37, 0.1)), ("d", "s")),
        # what only expansion found is no root; equals go by id
        ({}, (row("b", ("semantic",), 0.5, 0.2), row("a", ("semantic",), 0.5, 0.2),
              row("e", ("expansion",), 0.5)), ("a", "b")),
    ],
)  # fmt: skip
def test_roots_are_the_best_of_the_first_legs(
    fields: dict[str, Any], nodes: tuple[tuple[Any, ...], ...], roots: tuple[str, ...]
) -> None:
    assert findings(nodes=nodes, **fields).roots == roots
    assert findings(nodes=nodes, roots=1, **fields).roots == roots[:1]


EXPANSION = {"reason": "fanout", "hops": 2, "roots": 16, "fanout": 9, "direction": "both"}
PLACE = {"similarity": 0.31234, "rank": 91, "of": 400, "k": 64, "method": "exact", "expansion": EXPANSION}
FIGURES = {"tokens": 31, "budget": 57, "used": 50, "cap": 22, "source_used": 11, "weight": 0.5}


@pytest.mark.parametrize(
    ("stage", "facts", "numbers"),
    [
        (Stage.OUTSIDE_WINDOW, {"window": {"axis": "observed", "from": None, "to": "2026"}}, ["to 2026"]),
        (Stage.NOT_CURRENT, {"reason": "not_yet_known", "as_of": 4, "since_tx": 7}, ["4", "7"]),
        (Stage.NOT_CURRENT, {"reason": "ended", "as_of": 4, "until_tx": 3}, ["4", "3"]),
        (Stage.BELOW_TOP_K, PLACE, ["0.3123", "91", "400", "64", "fanout", "9"]),
        (Stage.BELOW_TOP_K, {**PLACE, "rank": 3}, ["approximate"]),
        (Stage.BEYOND_EXPANSION, {**EXPANSION, "semantic": True}, ["no vector", "fanout"]),
        (Stage.CUT_MAX_NODES, {"score": 0.1, "position": 61, "nodes": 70, "max_nodes": 51}, ["61", "51"]),
        (Stage.CUT_MIN_SCORE, {"score": 0.1, "min_score": 0.25}, ["0.1000", "0.25"]),
        (Stage.UNPACKABLE, {**FIGURES, "tokens": 99}, ["99", "57", "requested budget of 77"]),
        (Stage.OVER_SOURCE_CAP, FIGURES, ["31", "22", "11", "max_frac_per_source of 0.75"]),
        (Stage.SELECTED, {**FIGURES, "order": 0, "selected": 3}, ["number 1 of 3", "31", "50"]),
    ],
)  # fmt: skip
def test_a_sentence_gives_the_figures_that_decided(
    stage: Stage, facts: dict[str, Any], numbers: list[str]
) -> None:
    said = sentence(Fate(stage, "n", facts), Counterfactual(77, 0.75))
    assert all(number in said for number in numbers), said
    assert "minim" not in said
    assert "{" not in said


def test_a_failed_plan_is_told_by_its_error() -> None:
    record = replace(
        findings().record, outcome="failed", error={"code": "store.timeout", "detail": "too slow"}
    )
    assert "store.timeout" in failed(record)
    assert "too slow" in failed(record)


def test_a_summary_counts_by_stage_and_says_what_was_not_looked_at() -> None:
    stages = {"selected": 2, "below_top_k": 18}
    assert summary("a.md", "source", stages, 0) == "The source a.md has 20 spans: 2 selected, 18 below top k."
    assert "45 spans, of which the first 20 were looked at" in summary("cat", "phrase", stages, 25)
