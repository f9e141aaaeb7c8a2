"""The budget is a hard cap over all that the model reads, for every unit, counter and policy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.deliver.deliver import deliver
from planner.deliver.envelope import tag_of
from planner.errors import InsufficientEvidence, UnknownCounter
from planner.ports import TokenCounter
from planner.tokens import counter as counter_named
from planner.types import Delivery
from tests.delivery_checks import check
from tests.delivery_strategies import PLAN_HASH, TAG, Asked, asked


def test_the_content_of_these_tests_knows_the_tag() -> None:
    assert tag_of(PLAN_HASH.encode()) == TAG


@given(asked(), st.integers(1, 1_500))
def test_a_delivery_keeps_its_budget_and_shows_what_it_says(drawn: Asked, budget: int) -> None:
    try:
        delivery = deliver(drawn.hits, drawn.shelf, budget=budget, **drawn.options)
    except InsufficientEvidence as error:
        _suffices_exactly(drawn, budget, error)
        return
    check(delivery, drawn.shelf, drawn.hits, drawn.options["counter"])


@given(asked(), st.integers(60, 1_500), st.sampled_from((-1, 0, 1)))
def test_a_delivery_keeps_a_budget_at_and_beside_an_exact_fit(drawn: Asked, budget: int, beside: int) -> None:
    fitted = _delivered(drawn, budget)
    again = None if fitted is None else _delivered(drawn, max(1, fitted.used + beside))
    if again is not None:
        check(again, drawn.shelf, drawn.hits, drawn.options["counter"])


@given(asked(), st.integers(60, 1_500))
def test_the_same_question_gives_the_same_bundle(drawn: Asked, budget: int) -> None:
    first, second = _delivered(drawn, budget), _delivered(drawn, budget)
    assert first == second
    if first is not None and drawn.options["plan_hash"] is not None:
        other = deliver(drawn.hits, drawn.shelf, budget=budget + 1_000, **drawn.options)
        assert other.delivery_hash != first.delivery_hash


@given(asked(), st.integers(1, 400), st.sampled_from((0.1, 0.4, 1.0)))
def test_the_cap_of_a_source_is_kept(drawn: Asked, budget: int, share: float) -> None:
    drawn.options["max_frac"] = share
    delivery = _delivered(drawn, budget)
    if delivery is not None:
        assert max(delivery.sources.values()) <= int(share * budget)


@pytest.mark.parametrize("name", ["openai:o200k_base", "openai:cl100k_base"])
@given(drawn=asked(), budget=st.integers(20, 600))
def test_exact_counters_keep_the_budget_too(name: str, drawn: Asked, budget: int) -> None:
    counter = _counter(name)
    drawn.options["counter"] = counter
    delivery = _delivered(drawn, budget)
    if delivery is not None:
        check(delivery, drawn.shelf, drawn.hits, counter)


def _counter(name: str) -> TokenCounter:
    try:
        return counter_named(name, {})
    except UnknownCounter as error:
        pytest.skip(str(error))


def _delivered(drawn: Asked, budget: int) -> Delivery | None:
    try:
        return deliver(drawn.hits, drawn.shelf, budget=budget, **drawn.options)
    except InsufficientEvidence:
        return None


def _suffices_exactly(drawn: Asked, budget: int, refusal: InsufficientEvidence) -> None:
    """Check that the budget that a refusal names is enough, and one less is not."""
    enough: Any = refusal.sufficient_budget
    assert refusal.reason == "nothing_fits"
    delivery = deliver(drawn.hits, drawn.shelf, budget=enough, **drawn.options)
    check(delivery, drawn.shelf, drawn.hits, drawn.options["counter"])
    with pytest.raises(InsufficientEvidence) as refused:
        deliver(drawn.hits, drawn.shelf, budget=max(enough - 1, 1), **drawn.options)
    assert refused.value.sufficient_budget == enough
