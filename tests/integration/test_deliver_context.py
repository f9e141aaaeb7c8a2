"""A question and its bundle in one step: the budget bounds the bundle; a refusal names one that suffices."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from planner import Planner, Settings
from planner.errors import InsufficientEvidence, UnknownModel, UnknownScope
from planner.request import PlanRequest
from planner.tokens import counter
from tests.integration.articles import article
from tests.integration.graph import Connection, rows_of
from tests.integration.test_deliver_plan import UNITS

QUESTION = "at 0"
LIMITED = {"hops": 0, "k": 2}


def with_settings(planner: Planner, **changed: Any) -> Planner:
    """Return the planner under other settings; one source may fill a plan."""
    return Planner(replace(planner.engine, settings=Settings(**{"max_frac_per_source": 1.0, **changed})))


@pytest.fixture
def articles(planner: Planner, scope: str) -> str:
    """Give a scope of two texts of seven paragraphs, of which the fourth ones are near the question."""
    for name, near in (("a.txt", 0), ("b.txt", 10)):
        planner.ingest_text(scope, name, article(name, near))
    return scope


@pytest.mark.parametrize("unit", UNITS)
def test_the_bundle_keeps_within_the_budget_and_the_plan_gets_its_share(
    planner: Planner, articles: str, unit: Any
) -> None:
    for budget in (400, 700, 2_000):
        delivery = planner.context(articles, QUESTION, unit, budget_tokens=budget, **LIMITED)
        assert (
            counter("utf8-script-v1", {}).count(delivery.text) == delivery.used <= budget == delivery.budget
        )
        assert delivery.plan is not None
        requested = planner.load(delivery.plan).budget.requested
        assert requested == (math.floor(0.7 * budget) if unit == "auto" else budget)
        assert [record.delivery_id for record in planner.deliveries(delivery.plan)] == [delivery.delivery_id]


def test_auto_upgrades_one_hit_to_its_record_and_one_to_its_window(planner: Planner, articles: str) -> None:
    """The best hit grows first; what is left is enough for the neighbours of the second."""
    told = {}
    for budget in (400, 550, 1_150, 3_000):
        delivery = planner.context(articles, QUESTION, "auto", budget_tokens=budget, **LIMITED)
        told[budget] = {item.evidence[0]: item.unit for item in delivery.items if item.evidence}
        assert delivery.used <= budget
    assert told == {
        400: {"E1": "chunk", "E2": "chunk"},
        550: {"E1": "window", "E2": "chunk"},
        1_150: {"E1": "record", "E2": "window"},
        3_000: {"E1": "record", "E2": "record"},
    }


def test_the_share_of_auto_is_a_setting(planner: Planner, articles: str) -> None:
    own = with_settings(planner, chunk_share=0.8, unit="auto")
    delivery = own.context(articles, QUESTION, budget_tokens=1_001)
    assert delivery.plan is not None
    assert own.load(delivery.plan).budget.requested == 800
    assert delivery.unit == "auto"


def test_what_narrows_a_plan_bounds_the_bundle_as_well(planner: Planner, articles: str) -> None:
    asked = {"budget_tokens": 5_000, **LIMITED}
    for fields, most in (({"context_window": 1_200}, 600), ({"model": "gpt-4", "counter": None}, 4_096)):
        delivery = planner.context(articles, QUESTION, "record", **asked, **fields)
        assert delivery.used <= delivery.budget == most
    assert delivery.counter == "openai:cl100k_base"
    own = with_settings(planner, max_budget=500)
    assert own.context(articles, QUESTION, "auto", **asked).budget == 500


@pytest.mark.parametrize("budget", [1, 30, 60])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ["utf8-script-v1", "openai:o200k_base"])
def test_a_refusal_names_a_budget_that_suffices_and_leaves_one_plan(
    planner: Planner, conn: Connection, articles: str, unit: Any, budget: int, name: str
) -> None:
    before = rows_of(conn, articles)
    with pytest.raises(InsufficientEvidence, match=f"a bundle of {budget} tokens") as caught:
        planner.context(articles, QUESTION, unit, budget_tokens=budget, counter=name)
    after = rows_of(conn, articles)
    assert (after["plan"], after["delivery"]) == (before["plan"] + 1, before["delivery"])
    assert planner.load(str(caught.value.plan)).budget.requested <= budget
    enough = caught.value.sufficient_budget
    assert enough is not None
    assert str(enough) in str(caught.value)
    assert planner.context(articles, QUESTION, unit, budget_tokens=enough, counter=name).items


def test_where_no_budget_that_may_be_asked_for_suffices_none_is_named(
    planner: Planner, articles: str
) -> None:
    own = with_settings(planner, max_budget=60)
    for unit in UNITS:
        with pytest.raises(InsufficientEvidence, match="no budget that may be asked for") as caught:
            own.context(articles, QUESTION, unit, budget_tokens=1_000)  # type: ignore[arg-type]
        assert (caught.value.reason, caught.value.sufficient_budget) == ("nothing_fits", None)


def test_a_request_and_a_rescorer_are_taken_as_a_plan_takes_them(planner: Planner, articles: str) -> None:
    class Reversed:
        name = "reversed"

        def score(self, question: str, candidates: Any, texts: Any) -> list[float]:
            return [1 - candidate.score for candidate in candidates]

    request = PlanRequest.parse({"scope": articles, "text": QUESTION, "budget_tokens": 1_000, **LIMITED})
    straight = planner.context(request, unit="chunk")
    turned = planner.context(request, unit="chunk", rescore=Reversed())
    first = [next(i.ref.source_id for i in d.items if "E1" in i.evidence) for d in (straight, turned)]
    assert first == ["a.txt", "b.txt"]


def test_what_no_plan_can_be_made_of_is_refused_as_a_plan_is(planner: Planner, articles: str) -> None:
    with pytest.raises(UnknownScope):
        planner.context("nobody", QUESTION)
    with pytest.raises(UnknownModel):
        planner.context(articles, QUESTION, model="gpt-none")
