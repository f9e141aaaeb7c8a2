"""Every plan leaves a trace, refused and failed ones too, and none is handed out that nobody can inspect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
import pytest

from planner import InsufficientEvidence, Planner, Settings
from planner.errors import EmbedderError, IntegrityError, PlannerError, StoreError, StoreTimeout
from planner.ingest import scope_id
from planner.ports import Embedder
from planner.types import EvidencePlan
from tests.integration.graph import QUESTION, V1, Connection, Graph, ask, circle_embedder, fan, rows_of

Remade = Callable[..., Planner]


@pytest.fixture
def remade(planner: Planner) -> Remade:
    """Return a function that makes another planner on the same pool, with other settings or embedder."""

    def make(embedder: Embedder | None = None, **settings: Any) -> Planner:
        chosen = Settings(**{**V1, "max_frac_per_source": 1.0, **settings})
        return Planner.from_pool(
            planner.engine.store.pool, settings=chosen, embedder=embedder or circle_embedder()
        )

    return make


def traced(planner: Planner, error: PlannerError) -> EvidencePlan:
    """Load the plan that an error names."""
    return planner.load(str(error.detail["plan"]))


def test_a_refusal_is_traced_with_its_pool_and_its_hashes(planner: Planner, scope: str) -> None:
    fan(0, 10).into(planner, scope)
    with pytest.raises(InsufficientEvidence) as caught:
        planner.plan(scope, embedding=QUESTION, budget_tokens=2)
    assert (caught.value.reason, caught.value.plan) == ("nothing_fits", caught.value.detail["plan"])
    plan = traced(planner, caught.value)
    assert (plan.outcome, plan.spans, plan.stats["unpackable"]) == ("refused", (), 2)
    assert plan.error is not None
    assert (plan.error["code"], plan.error["reason"]) == ("evidence.insufficient", "nothing_fits")
    assert plan.error["sufficient_budget"] == caught.value.sufficient_budget
    assert planner.replay(plan.ref).pool_hash == plan.pool_hash
    enough = planner.plan(scope, embedding=QUESTION, budget_tokens=caught.value.sufficient_budget)
    assert len(enough.spans) == 1


def test_an_empty_pool_is_refused_and_traced(planner: Planner, scope: str) -> None:
    fan(0).into(planner, scope)
    nothing = {"field": "kind", "op": "eq", "value": "nothing"}
    with pytest.raises(InsufficientEvidence) as caught:
        planner.plan(scope, embedding=QUESTION, must=nothing)
    assert (caught.value.reason, caught.value.sufficient_budget) == ("empty_pool", None)
    plan = traced(planner, caught.value)
    assert (plan.outcome, plan.stats["candidates"]) == ("refused", 0)
    assert plan.request["must"] == nothing


def test_allow_ungrounded_returns_the_empty_plan_instead(planner: Planner, scope: str) -> None:
    fan(0).into(planner, scope)
    plan = planner.plan(scope, embedding=QUESTION, budget_tokens=2, allow_ungrounded=True)
    assert (plan.outcome, plan.spans, plan.used, plan.error) == ("planned", (), 0, None)
    assert planner.load(plan.ref).to_dict() == plan.to_dict()


@dataclass(frozen=True)
class Failing:
    """An embedder of the caller's own that does not keep its promises."""

    answer: object
    name: str = "circle"
    revision: str = ""
    dimensions: int = 2

    def embed(self, texts: Sequence[str]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return np.array(self.answer, dtype=np.float32)


BROKEN = {
    "raises": ZeroDivisionError("no model today"),
    "too short": [[1.0]],
    "too few": np.zeros((0, 2)),
    "flat": [1.0, 0.0],
    "not finite": [[float("nan"), 1.0]],
}


@pytest.mark.parametrize("how", BROKEN)
def test_an_embedder_that_fails_makes_a_traced_failure(
    planner: Planner, remade: Remade, scope: str, how: str
) -> None:
    fan(0).into(planner, scope)
    with pytest.raises(EmbedderError) as caught:
        remade(Failing(BROKEN[how])).plan(scope, "question")
    plan = traced(planner, caught.value)
    assert (plan.outcome, plan.plan_hash, plan.spans, plan.rejected) == ("failed", None, (), ())
    assert plan.error == caught.value.to_dict()
    assert plan.request["text"] == "question"


def test_vectors_of_another_model_are_never_compared(planner: Planner, remade: Remade, scope: str) -> None:
    fan(0).into(planner, scope)
    for other in (Failing(None, name="square"), Failing(None, revision="2"), Failing(None, dimensions=3)):
        with pytest.raises(EmbedderError, match="made by circle") as caught:
            remade(other).plan(scope, "question")
        assert traced(planner, caught.value).outcome == "failed"


def test_bytes_that_do_not_match_the_ledger_are_never_delivered(
    planner: Planner, conn: Connection, scope: str
) -> None:
    fan(0, 10).into(planner, scope)
    conn.execute(
        "UPDATE planner.source_version SET body = convert_to('Fact number 7.', 'UTF8')"
        " WHERE scope_id = %s AND source_id = 'n1.txt'",
        (scope_id(scope),),
    )
    with pytest.raises(IntegrityError, match=r"n1\.txt@1:0-14") as caught:
        planner.plan(scope, embedding=QUESTION)
    plan = traced(planner, caught.value)
    assert (plan.outcome, plan.plan_hash, plan.spans) == ("failed", None, ())
    assert plan.error is not None
    assert plan.error["code"] == "integrity.failed"
    with pytest.raises(IntegrityError, match=r"n1\.txt@1:0-14"):
        planner.slice_text(scope, "n1.txt@1:0-14")
    assert planner.slice_text(scope, "n0.txt@1:0-14") == "Fact number 0."


@pytest.fixture
def locked(shared_database_url: str) -> Iterator[Connection]:
    """Give a connection that keeps everyone else from reading vectors."""
    with psycopg.connect(shared_database_url) as holder:
        holder.execute("LOCK TABLE planner.embedding IN ACCESS EXCLUSIVE MODE")
        yield holder
        holder.rollback()


def test_a_statement_that_takes_too_long_makes_a_traced_failure(
    planner: Planner, remade: Remade, scope: str, request: pytest.FixtureRequest
) -> None:
    fan(0).into(planner, scope)
    holder = request.getfixturevalue("locked")
    with pytest.raises(StoreTimeout) as caught:
        remade(statement_timeout_ms=500).plan(scope, embedding=QUESTION)
    holder.rollback()
    plan = traced(planner, caught.value)
    assert (plan.outcome, plan.error and plan.error["code"]) == ("failed", "store.timeout")


def test_a_plan_that_cannot_be_traced_is_not_handed_out(
    planner: Planner, conn: Connection, scope: str
) -> None:
    fan(0).into(planner, scope)
    refuse = (
        f"ALTER TABLE planner.plan_candidate ADD CONSTRAINT refuse CHECK (scope_id <> '{scope_id(scope)}')"
    )
    conn.execute(refuse)
    try:
        with pytest.raises(StoreError):
            planner.plan(scope, embedding=QUESTION)
        assert rows_of(conn, scope)["plan"] == 0
    finally:
        conn.execute("ALTER TABLE planner.plan_candidate DROP CONSTRAINT refuse")


def test_without_a_trace_nothing_is_written_and_the_plan_is_the_same(
    planner: Planner, remade: Remade, conn: Connection, scope: str
) -> None:
    fan(0, 10).into(planner, scope)
    before = rows_of(conn, scope)
    off = remade(trace="off")
    plan = off.plan(scope, embedding=QUESTION, counter="openai:o200k_base")
    with pytest.raises(InsufficientEvidence) as caught:
        off.plan(scope, embedding=QUESTION, budget_tokens=1)
    assert "plan" not in caught.value.to_dict()
    assert rows_of(conn, scope) == before
    again = planner.plan(scope, embedding=QUESTION, counter="openai:o200k_base")
    assert (again.plan_hash, again.pool_hash) == (plan.plan_hash, plan.pool_hash)


def test_the_trace_keeps_the_whole_pool_and_no_text(planner: Planner, conn: Connection, scope: str) -> None:
    Graph().node("a", 0, text="An unmistakable sentence.").node("b", 9, text="Another one.").into(
        planner, scope
    )
    plan = ask(planner, scope, budget_tokens=8)
    assert (plan.stats["selected"], plan.stats["candidates"]) == (1, 2)
    rows = conn.execute(
        "SELECT p::text || c::text || n::text FROM planner.plan p"
        " JOIN planner.plan_candidate c USING (scope_id, plan_id)"
        " JOIN planner.plan_node n USING (scope_id, plan_id)"
        " WHERE scope_id = %s",
        (scope_id(scope),),
    ).fetchall()
    assert len(rows) == 2 * 2
    assert not any("unmistakable" in row[0] or "Another" in row[0] for row in rows)
