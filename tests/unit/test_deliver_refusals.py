"""What is refused, and that a refusal says what would be right."""

from __future__ import annotations

import pytest

from planner.deliver.deliver import deliver
from planner.errors import CounterError, InsufficientEvidence, RequestError
from planner.tokens import CallableCounter, ScriptCounter
from tests.bundle_parser import parse
from tests.delivery_checks import check
from tests.memory_shelf import MemoryShelf, plain

COUNTER = ScriptCounter()


@pytest.fixture
def shelf() -> MemoryShelf:
    document, text = plain(
        "a.md", [f"Paragraph {i} is a little longer than the last. " * i for i in range(1, 9)]
    )
    shelf = MemoryShelf()
    shelf.put(document, {("a.md", 1): text})
    return shelf


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "page"}, "unknown unit 'page'; the units are chunk, window, record, auto"),
        ({"on_misfit": "drop"}, "on_misfit = 'drop' is neither skip nor cut"),
        ({"budget": 0}, "budget = 0 is out of range"),
        ({"budget": True}, "budget = True is out of range"),
        ({"budget": 2**53 + 1}, "is out of range; ask for 1 to 9007199254740992 tokens"),
        ({"neighbours": -1}, "neighbours = -1 is not an integer, 0 or more"),
        ({"neighbours": 1.0}, "neighbours = 1.0 is not an integer, 0 or more"),
        ({"max_frac": 0.0}, "max_frac = 0.0 is not a share above 0, up to 1"),
        ({"max_frac": 1.1}, "max_frac = 1.1 is not a share above 0, up to 1"),
        ({"max_frac": float("nan")}, "max_frac = nan is not a share"),
        ({"max_frac": "half"}, "max_frac = 'half' is not a share"),
        ({"neighbours": 2**64}, "neighbours = 18446744073709551616 is not an integer, 0 or more"),
        ({"budget": "500"}, "budget = '500' is out of range"),
    ],
)
def test_a_request_out_of_range_is_refused(
    shelf: MemoryShelf, options: dict[str, object], message: str
) -> None:
    asked = {"budget": 500, "counter": COUNTER, **options}
    with pytest.raises(RequestError, match=message):
        deliver([shelf.hit(1, shelf.held["a.md"], 0)], shelf, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("ranks", [(0, 1), (1, 1), (-3,)])
def test_ranks_count_from_one_and_are_each_given_once(shelf: MemoryShelf, ranks: tuple[int, ...]) -> None:
    hits = [shelf.hit(rank, shelf.held["a.md"], position) for position, rank in enumerate(ranks)]
    with pytest.raises(RequestError, match="is below 1, or another hit has it too"):
        deliver(hits, shelf, budget=500, counter=COUNTER)


@pytest.mark.parametrize("max_frac", [None, 0.3])
@pytest.mark.parametrize("on_misfit", ["skip", "cut"])
@pytest.mark.parametrize("unit", ["chunk", "window", "record", "auto"])
def test_a_refusal_names_the_smallest_budget_that_suffices(
    shelf: MemoryShelf, unit: str, on_misfit: str, max_frac: float | None
) -> None:
    hits = [shelf.hit(rank, shelf.held["a.md"], 8 - rank) for rank in range(1, 9)]

    def at(budget: int) -> None:
        delivery = deliver(
            hits, shelf, budget=budget, counter=COUNTER, unit=unit, on_misfit=on_misfit, max_frac=max_frac
        )
        check(delivery, shelf, hits, COUNTER)

    with pytest.raises(InsufficientEvidence) as refused:
        at(3)
    assert refused.value.reason == "nothing_fits"
    enough = refused.value.sufficient_budget
    assert enough is not None
    assert f"a budget of {enough} would do" in str(refused.value)
    at(enough)
    with pytest.raises(InsufficientEvidence):
        at(enough - 1)


def test_no_hits_are_no_evidence() -> None:
    shelf = MemoryShelf()
    delivery = deliver([], shelf, budget=500, counter=COUNTER)
    assert (parse(delivery.text).envelopes, delivery.items, delivery.skipped) == ([], (), ())
    assert "No evidence was found." in delivery.text
    with pytest.raises(InsufficientEvidence) as refused:
        deliver([], shelf, budget=delivery.used - 1, counter=COUNTER)
    assert refused.value.sufficient_budget == delivery.used


def test_a_counter_that_changes_its_mind_is_refused(shelf: MemoryShelf) -> None:
    counts = iter(range(100, 10_000, 100))
    counter = CallableCounter("moody", "exact", lambda text: next(counts))
    with pytest.raises(CounterError, match="'moody' counts 200 tokens where it counted 150 or fewer before"):
        deliver([shelf.hit(1, shelf.held["a.md"], 0)], shelf, budget=150, counter=counter)


def test_a_counter_that_fails_is_refused(shelf: MemoryShelf) -> None:
    counter = CallableCounter("broken", "exact", lambda text: -1)
    with pytest.raises(CounterError, match="'broken' returned -1"):
        deliver([shelf.hit(1, shelf.held["a.md"], 0)], shelf, budget=150, counter=counter)
