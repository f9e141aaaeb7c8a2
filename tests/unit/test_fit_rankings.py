"""What a fit is measured against: each ranking by hand, and what packing by it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from planner.evaluation.fit.pools import Pool
from planner.evaluation.fit.rankings import OTHERS, OWN, Tally, fused, summed
from planner.evaluation.metrics import Item
from planner.recall.v2.features import BEST
from planner.recall.v2.weights import TERMS
from planner.selection.budget import at_max_frac, resolve_budget
from planner.settings import DEFAULT_KIND_PRIORS
from planner.types import Candidate, SelectionPolicy

POLICY = SelectionPolicy(DEFAULT_KIND_PRIORS, 0.5, 0.8, "v2")


def pool_of(similarity: Sequence[float], bm25: Sequence[float], *wanted: int) -> Pool:
    """Return a pool of passages of one source in a row, ten bytes and ten tokens each, score falling."""
    n = len(similarity)
    candidates = tuple(
        Candidate("s", 1, 10 * i, 10 * i + 10, "message", "truth", 1 / (i + 2), 10) for i in range(n)
    )
    places = np.arange(n)
    return Pool(
        items=tuple(Item("s", ((10 * i, 10 * i + 10),)) for i in wanted),
        candidates=candidates,
        terms=np.zeros((n, len(TERMS)), dtype=np.int64),
        similarity=np.array(similarity, dtype=np.float64),
        bm25=np.array(bm25, dtype=np.float64),
        before=np.where(places > 0, places - 1, n),
        after=np.where(places < n - 1, places + 1, n),
    )


def tally(*budgets: int) -> Tally:
    whole = [resolve_budget(b, counter="c", bound="exact", max_frac=0.4) for b in budgets]
    return Tally(POLICY, [at_max_frac(budget, 1.0) for budget in whole])


def test_rank_fusion_sums_over_the_legs_that_found_it() -> None:
    assert fused(pool_of([0.5, 0.9, 0.0], [7, 0, 0])).tolist() == [1 / 62 + 1 / 61, 1 / 61, 0.0]


def test_the_sum_is_min_max_of_both_legs_spread_to_the_better_neighbour() -> None:
    # cosine from its least to its best, 0.2 to 0.6; BM25 from nothing, as fewer than 200 texts match
    s = [0.0, 0.5 + 0.25, 1.0 + 1.0, 0.0]
    expected = [
        0.7 * s[0] + 0.3 * s[1],
        0.7 * s[1] + 0.3 * s[2],
        0.7 * s[2] + 0.3 * s[1],
        0.7 * s[3] + 0.3 * s[2],
    ]
    assert summed(pool_of([0.2, 0.4, 0.6, 0.0], [0, 2, 8, 0])) == pytest.approx(expected)


def test_beyond_the_200_best_a_leg_says_nothing() -> None:
    n = BEST + 5
    falling = [float(n - i) for i in range(n)]
    pool = pool_of(falling, falling)
    assert (fused(pool) > 0).sum() == BEST
    assert (summed(pool) > 0).sum() == BEST  # the 200th is 0 itself, and has a neighbour that is not


def test_figures_are_of_what_fits_in_rank_order() -> None:
    counted = tally(10, 25)
    counted.add(pool_of([0.1, 0.9, 0.0], [3, 2, 0], 0, 1))
    counted.add(pool_of([0.9, 0.1, 0.2], [0, 0, 1], 2))
    figures = counted.figures()
    assert list(figures) == [OWN, *OTHERS]
    assert figures["cosine"] == {
        "10": {"evidence_recall": 0.25, "all_evidence": 0.0},
        "25": {"evidence_recall": 1.0, "all_evidence": 1.0},
    }
    assert figures["BM25"]["10"] == {"evidence_recall": 0.75, "all_evidence": 0.5}
    assert figures[OWN]["25"] == {"evidence_recall": 0.5, "all_evidence": 0.5}


def test_a_question_that_recalls_nothing_finds_nothing() -> None:
    counted, empty = tally(10), pool_of([], [])
    counted.add(replace(empty, items=(Item("s", ((0, 10),)),)))
    assert {cell["10"]["evidence_recall"] for cell in counted.figures().values()} == {0.0}
    assert empty.sample().evidence.size == 0


def test_items_count_the_same_whatever_they_are_made_of() -> None:
    pool = pool_of([1, 1, 1, 1], [1, 1, 1, 1])
    both = (Item("s", ((0, 20),)), Item("s", ((35, 40),)))
    shares = replace(pool, items=both).sample().evidence
    assert shares.tolist() == [0.5, 0.5, 0.0, 1.0]
