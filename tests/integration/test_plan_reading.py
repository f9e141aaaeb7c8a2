"""A stored plan reads back as it was, replays to the same bytes, and names the first row that was changed."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from planner import Planner, Settings
from planner.errors import InsufficientEvidence, ReplayMismatch, RequestError, UnknownPlan
from planner.ingest import scope_id
from planner.tokens import CallableCounter
from planner.types import EvidencePlan
from tests.integration.graph import Connection, Graph, ask, circle_embedder, fan, fresh_scope, rows_of


@pytest.fixture(scope="module")
def plan(planner: Planner) -> EvidencePlan:
    """Give a plan in which every outcome but the unsliceable one occurs."""
    name = fresh_scope("read")
    spans = [(0, 11), (0, 3), (4, 7), (8, 11), (12, 26)]
    graph = Graph().source("s", "one two six ten and eleven", spans)
    graph.node("whole", 0, spans=[("s", *span) for span in spans])
    graph.node("long", 50, text="A text that is far longer than the budget is.")
    graph.node("more", 80, text="And more than that").node("b", 20, text="Some words")
    graph.node("c", 30, text="Some other").into(planner, name)
    share = Planner.from_pool(
        planner.engine.store.pool, settings=Settings(max_frac_per_source=0.5), embedder=circle_embedder()
    )
    return ask(share, name, counter="utf8-bytes-v1", budget_tokens=44)


def test_the_plan_of_these_tests_knows_every_outcome(plan: EvidencePlan) -> None:
    outcomes = {span.verdict.outcome.value for span in (*plan.spans, *plan.rejected)}
    assert outcomes == {"selected", "duplicate", "unpackable", "over_budget", "over_source_cap"}


def test_a_loaded_plan_equals_the_one_that_was_returned(planner: Planner, plan: EvidencePlan) -> None:
    loaded = planner.load(str(plan.ref))
    assert loaded.to_dict() == plan.to_dict()
    assert (loaded.spans, loaded.rejected) == (plan.spans, plan.rejected)


def test_a_replay_gives_the_same_hashes(planner: Planner, plan: EvidencePlan) -> None:
    replay = planner.replay(plan.ref)
    assert (replay.plan_hash, replay.pool_hash) == (plan.plan_hash, plan.pool_hash)
    assert (replay.candidates, replay.selected) == (plan.stats["candidates"], plan.stats["selected"])


DAMAGE = {
    "weight_bits = weight_bits + 1": r"weight of s@1:0-3 was",
    "score = score * 0.5": r"rank 0 was s@1:0-3",
    "outcome = 'over_budget', selection_order = NULL": r"outcome of s@1:0-3 was over_budget, is selected",
    "selection_order = selection_order + 99": r"order of s@1:0-3 was 99, is 0",
    "kind = 'heading'": r"rank 0 was s@1:0-3",
    "class = 'cache'": r"rank 0 was s@1:0-3",
    "text_hash = decode(repeat('00', 32), 'hex')": r"a stored hash is not the hash of the stored rows",
    "span_end = span_end - 1": r"s@1:0-2|hash",
    "version_tx = version_tx + 1": r"rank 0 was s@2:0-3",
    "node_id = 'n'": "",
}
"""Changes of the first candidate, and what replay says first; none where the hashes do not cover it."""


@pytest.mark.parametrize("change", DAMAGE)
def test_a_changed_candidate_makes_replay_name_the_first_difference(
    planner: Planner, shared_database_url: str, conn: Connection, plan: EvidencePlan, change: str
) -> None:
    key = (scope_id(plan.ref.scope), plan.plan_id)
    first = (
        "SELECT * FROM planner.plan_candidate WHERE scope_id = %s AND plan_id = %s AND selection_order = 0"
    )
    kept = conn.execute(first, key).fetchone()
    assert kept is not None
    where = "WHERE scope_id = %s AND plan_id = %s AND rank = %s"
    conn.execute(f"UPDATE planner.plan_candidate SET {change} {where}", (*key, kept[2]))
    try:
        if DAMAGE[change]:
            with pytest.raises(ReplayMismatch, match=DAMAGE[change]):
                planner.replay(plan.ref)
        else:  # which node brought a span in is told, not hashed
            assert planner.replay(plan.ref).plan_hash == plan.plan_hash
    finally:
        conn.execute(f"DELETE FROM planner.plan_candidate {where}", (*key, kept[2]))
        marks = ", ".join(["%s"] * len(kept))
        conn.execute(f"INSERT INTO planner.plan_candidate VALUES ({marks})", kept)
    assert planner.replay(plan.ref).plan_hash == plan.plan_hash


def test_a_missing_candidate_or_a_changed_figure_is_noticed_too(
    planner: Planner, shared_database_url: str, plan: EvidencePlan
) -> None:
    key = (scope_id(plan.ref.scope), plan.plan_id)
    for damage in (
        "DELETE FROM planner.plan_candidate WHERE scope_id = %s AND plan_id = %s AND outcome = 'over_budget'",
        "UPDATE planner.plan SET plan_hash = pool_hash WHERE scope_id = %s AND plan_id = %s",
        "UPDATE planner.plan SET used = used - 1 WHERE scope_id = %s AND plan_id = %s",
        "UPDATE planner.plan SET stats = stats || '{\"merged\": 9}' WHERE scope_id = %s AND plan_id = %s",
    ):
        copy = _copied(planner, shared_database_url, plan)
        with psycopg.connect(shared_database_url, autocommit=True) as connection:
            assert connection.execute(damage, (key[0], copy.plan_id)).rowcount > 0
        with pytest.raises(ReplayMismatch):
            planner.replay(copy.ref)


def _copied(planner: Planner, url: str, plan: EvidencePlan) -> EvidencePlan:
    """Return a plan of the same request, as another row of the trace."""
    share = Planner.from_pool(
        planner.engine.store.pool, settings=Settings(max_frac_per_source=0.5), embedder=circle_embedder()
    )
    copy = share.plan({k: v for k, v in plan.request.items() if v is not None})
    assert (copy.plan_hash, copy.plan_id != plan.plan_id) == (plan.plan_hash, True)
    return copy


def test_a_failed_plan_has_nothing_to_replay(planner: Planner, conn: Connection, scope: str) -> None:
    fan(0).into(planner, scope)
    with pytest.raises(InsufficientEvidence) as caught:
        planner.plan(scope, embedding=[1.0, 0.0], budget_tokens=1)
    refused = planner.replay(str(caught.value.plan))  # a refusal was decided, and is decided again
    assert refused.selected == 0
    conn.execute(
        "UPDATE planner.plan SET outcome = 'failed', plan_hash = NULL, pool_hash = NULL WHERE scope_id = %s",
        (scope_id(scope),),
    )
    with pytest.raises(ReplayMismatch, match="nothing to replay"):
        planner.replay(str(caught.value.plan))


def test_a_plan_that_is_not_there_is_unknown_and_what_is_no_reference_is_refused(
    planner: Planner, plan: EvidencePlan
) -> None:
    for ref in (f"{plan.ref.scope}:{uuid4()}", f"nowhere:{plan.plan_id}"):
        for read in (planner.load, planner.replay):
            with pytest.raises(UnknownPlan, match=ref):
                read(ref)
    for ref in (plan.plan_id, f"{plan.ref.scope}:1", "", f"{plan.ref}x"):
        with pytest.raises(RequestError, match="not a plan reference"):
            planner.load(ref)


def test_exact_counts_are_written_with_the_trace_and_not_made_again(
    planner: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("a", 0, text="Twelve bytes").node("b", 10, text="Seven  b").into(planner, scope)
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    counter = CallableCounter("characters", "exact", count)
    counting = Planner.from_pool(
        planner.engine.store.pool,
        settings=Settings(max_frac_per_source=1.0),
        embedder=circle_embedder(),
        counters={"characters": counter},
    )
    first = ask(counting, scope, counter="characters")
    assert sorted(counted) == ["Seven  b", "Twelve bytes"]
    assert rows_of(conn, scope)["token_count"] == 2
    counted.clear()
    again = ask(counting, scope, counter="characters")
    assert (counted, again.plan_hash) == ([], first.plan_hash)
    assert {s.text: s.verdict.candidate.tokens for s in again.spans} == {"Twelve bytes": 12, "Seven  b": 8}
    other = fresh_scope()
    Graph().node("a", 0, text="Twelve bytes").into(planner, other)
    ask(counting, other, counter="characters")
    assert counted == ["Twelve bytes"]  # another scope's counts are its own


def test_a_counter_that_reads_the_ledger_fills_no_cache(
    planner: Planner, conn: Connection, scope: str
) -> None:
    fan(0).into(planner, scope)
    for name in ("utf8-bytes-v1", "utf8-script-v1"):
        ask(planner, scope, counter=name)
    assert rows_of(conn, scope)["token_count"] == 0


def test_what_the_plan_reports_adds_up(plan: EvidencePlan) -> None:
    told: dict[str, Any] = plan.to_dict()
    by_outcome = [s.get("outcome", "selected") for s in (*told["spans"], *told["rejected"])]
    for outcome in set(by_outcome):
        assert told["stats"][outcome] == by_outcome.count(outcome)
    assert told["stats"]["candidates"] == len(by_outcome)
    assert told["used"] == sum(span["tokens"] for span in told["spans"]) <= told["budget"]
