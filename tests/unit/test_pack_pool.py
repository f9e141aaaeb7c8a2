"""Pools and budgets that selection refuses, and the edges of those that it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.errors import BadCandidate, RequestError
from planner.ports import Bound
from planner.selection.budget import MAX_REQUEST, resolve_budget
from planner.selection.select import insufficient, select
from planner.settings import DEFAULT_KIND_PRIORS
from planner.types import Candidate, Outcome, SelectionPolicy

POLICY = SelectionPolicy(DEFAULT_KIND_PRIORS, 0.5, 0.8)
BUDGET = resolve_budget(100, counter="caller", bound="exact", max_frac=1.0)
SPAN = Candidate("a", 1, 0, 10, "paragraph", "truth", 0.5, 5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"score": float("nan")}, "score = nan"),
        ({"score": float("inf")}, "score = inf"),
        ({"score": -0.1}, r"score = -0\.1"),
        ({"kind": "figure"}, "unknown kind 'figure'; the kinds are paragraph"),
        ({"source_class": "lie"}, "class 'lie' is not truth or cache"),
        ({"end": 0}, "range is empty"),
        ({"start": 11}, "range is empty"),
        ({"start": -1}, "start = -1"),
        ({"start": 0.5}, r"start = 0\.5"),
        ({"end": 2**62}, "end = 4611686018427387904"),
        ({"end": 2**80}, "end = "),
        ({"version_tx": -1}, "version_tx = -1"),
        ({"tokens": -1}, "tokens = -1"),
        ({"tokens": 1.5}, r"tokens = 1\.5"),
        ({"source_id": ""}, "source_id = ''"),
        ({"source_id": "\ud800"}, "not valid Unicode"),
        ({"source_id": "b"}, "b@1:0-10: the span is in the pool more than once"),
    ],
)
@pytest.mark.parametrize("sliceable", [True, False])
def test_a_bad_candidate_is_refused_by_its_reference(
    changes: dict[str, Any], message: str, sliceable: bool
) -> None:
    bad = replace(SPAN, **changes, sliceable=sliceable)
    with pytest.raises(BadCandidate, match=message):
        select([replace(SPAN, source_id="b"), bad], POLICY, BUDGET)


def test_offsets_and_transactions_below_2_to_the_62_are_exact() -> None:
    last = 2**62 - 1
    far = [replace(SPAN, start=last - 10, end=last), replace(SPAN, start=last - 9, end=last, score=0.4)]
    apart = [replace(span, version_tx=last) for span in far[:1]]
    outcomes = [v.outcome for v in select([*far, *apart], POLICY, BUDGET).verdicts]
    assert outcomes == [Outcome.SELECTED, Outcome.SELECTED, Outcome.DUPLICATE]


def test_spans_of_different_versions_are_never_duplicates() -> None:
    assert select([SPAN, replace(SPAN, version_tx=2)], POLICY, BUDGET).stats["selected"] == 2


def test_containment_is_a_duplicate_at_threshold_one_and_overlap_is_not() -> None:
    policy = replace(POLICY, dedup_overlap=1.0)
    inside = replace(SPAN, start=2, end=9, score=0.4)
    beside = replace(SPAN, start=1, end=11, score=0.3)
    verdicts = select([SPAN, inside, beside], policy, BUDGET).verdicts
    assert [v.outcome for v in verdicts] == [Outcome.SELECTED, Outcome.DUPLICATE, Outcome.SELECTED]
    assert verdicts[1].duplicate_of == SPAN.ref


def test_a_cap_that_blocks_strands_the_rest_of_the_budget() -> None:
    budget = resolve_budget(100, counter="caller", bound="exact", max_frac=0.4)
    pool = [replace(SPAN, start=i * 10, end=i * 10 + 10, tokens=30) for i in range(3)]
    selection = select(pool, POLICY, budget)
    assert [v.outcome for v in selection.verdicts] == [
        Outcome.SELECTED,
        Outcome.OVER_SOURCE_CAP,
        Outcome.OVER_SOURCE_CAP,
    ]
    assert (selection.used, selection.stats["budget_stranded_by_cap"]) == (30, 70)


@pytest.mark.parametrize(
    ("requested", "bound", "limits", "budget", "cap", "narrowed_by"),
    [
        (1000, "exact", (None, None), 1000, 400, None),
        (1000, "upper_bound", (None, None), 1000, 400, None),
        (1000, "estimate", (None, None), 900, 360, None),
        (1000, "exact", (500, None), 500, 200, "max_budget"),
        (1000, "exact", (500, 800), 400, 160, "context_window"),
        (1000, "exact", (400, 801), 400, 160, "max_budget"),
        (1000, "estimate", (None, 7), 2, 0, "context_window"),
        (1000, "exact", (1000, 2000), 1000, 400, None),
        (1, "estimate", (None, None), 0, 0, None),
        (1, "exact", (None, 1), 0, 0, "context_window"),
        (7, "exact", (None, None), 7, 2, None),
    ],
)
def test_ceilings_and_the_estimate_s_factor_only_lower_the_budget(
    requested: int,
    bound: Bound,
    limits: tuple[int | None, int | None],
    budget: int,
    cap: int,
    narrowed_by: str | None,
) -> None:
    found = resolve_budget(
        requested, counter="c", bound=bound, max_frac=0.4, max_budget=limits[0], context_window=limits[1]
    )
    assert (found.requested, found.budget, found.cap, found.narrowed_by) == (
        requested,
        budget,
        cap,
        narrowed_by,
    )


@pytest.mark.parametrize("requested", [0, -1, MAX_REQUEST + 1])
def test_a_request_out_of_range_is_refused(requested: int) -> None:
    with pytest.raises(RequestError, match=f"budget = {requested}"):
        resolve_budget(requested, counter="c", bound="exact", max_frac=1.0)


def test_a_pool_of_unsliceable_candidates_is_an_empty_one() -> None:
    gone = [replace(SPAN, source_id=name, sliceable=False) for name in ("b", "a")]
    selection = select(gone, POLICY, BUDGET)
    assert [v.candidate.source_id for v in selection.verdicts] == ["a", "b"]
    refusal = insufficient(selection)
    assert refusal is not None
    assert (refusal.reason, refusal.sufficient_budget) == ("empty_pool", None)
