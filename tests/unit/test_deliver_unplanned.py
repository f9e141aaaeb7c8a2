"""Delivery behind any retriever: results in, a bundle out, no plan, no store."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import planner
from planner.errors import InsufficientEvidence, RequestError, UnknownCounter
from planner.tokens import ByteCounter, CallableCounter, counter
from planner.types import Unit

RECORD = "One is here.\n\nTwo is there.\n\n" + "Three is away. " * 200
UNITS: tuple[Unit, ...] = ("chunk", "window", "record", "auto")
RESULTS: list[dict[str, Any]] = [
    {"source": "a.txt", "start": 14, "text": "Two is there.", "record": RECORD, "title": "Numbers"},
    {"source": "b.txt", "text": "Five.", "trust": "internal"},
]


def test_a_result_becomes_as_much_of_its_record_as_the_unit_says() -> None:
    shown = {}
    for unit in UNITS:
        delivery = planner.deliver(RESULTS, unit, budget_tokens=2_000)
        text = delivery.text.encode()
        first, second = [text[item.start : item.end].decode() for item in delivery.items]
        assert [item.evidence for item in delivery.items] == [("E1",), ("E2",)]
        assert (second, delivery.plan, delivery.plan_hash, delivery.delivery_id) == (
            "Five.",
            None,
            None,
            None,
        )
        assert delivery.used == counter("utf8-script-v1", {}).count(delivery.text) <= 2_000
        assert delivery == planner.deliver(RESULTS, unit, budget_tokens=2_000)
        shown[unit] = first
    assert (shown["chunk"], shown["record"], shown["auto"]) == ("Two is there.", RECORD, RECORD)
    assert shown["window"].startswith("One is here.\n\nTwo is there.\n\nThree is away.")
    assert len(shown["window"]) < len(RECORD) / 2


def test_a_counter_is_named_or_given() -> None:
    words = CallableCounter("words", "estimate", lambda text: len(text.split()))
    for given, name in (
        ("utf8-bytes-v1", "utf8-bytes-v1"),
        (ByteCounter(), "utf8-bytes-v1"),
        (words, "words"),
    ):
        assert planner.deliver(RESULTS, budget_tokens=900, counter=given).counter == name
    with pytest.raises(UnknownCounter, match="abacus"):
        planner.deliver(RESULTS, budget_tokens=900, counter="abacus")


@pytest.mark.parametrize(
    ("results", "how", "named"),
    [
        (RESULTS, {"unit": "page"}, "page"),
        (RESULTS, {"budget_tokens": 0}, "budget"),
        (RESULTS, {"neighbours": -1}, "neighbours"),
        (RESULTS, {"on_misfit": "fold"}, "on_misfit"),
        (RESULTS, {"max_frac": 0.0}, "max_frac"),
        ([*RESULTS, {"source": "c", "colour": "red"}], {}, "result 3"),
        ([{"source": "c"}], {}, "result 1"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_by_name(results: Any, how: dict[str, Any], named: str) -> None:
    with pytest.raises(RequestError, match=named):
        planner.deliver(results, **{"budget_tokens": 500, **how})


def test_where_nothing_fits_the_budget_that_does_is_named() -> None:
    with pytest.raises(InsufficientEvidence) as caught:
        planner.deliver(RESULTS, budget_tokens=5)
    enough = caught.value.sufficient_budget or 0
    assert planner.deliver(RESULTS, budget_tokens=enough).used == enough


@pytest.mark.parametrize("first", ["import planner.deliver.escape", "import planner.client", "pass"])
def test_it_is_the_same_function_whatever_was_imported_before(first: str) -> None:
    program = (
        f"{first}\nimport planner\nfrom planner import deliver\nimport planner.deliver.text as text\n"
        "used = {call([{'source': 'a', 'text': 'Hello'}], budget_tokens=99).used"
        " for call in (planner.deliver, deliver)}\n"
        "assert len(used) == 1 and text.Texts and 'deliver' in planner.__all__"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_it_needs_no_database_stack() -> None:
    program = (
        "import sys, planner\nplanner.deliver([{'source': 'a', 'text': 'Hello'}], budget_tokens=99)\n"
        "print(sorted({'psycopg', 'sqlalchemy', 'alembic'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout == "[]\n"
