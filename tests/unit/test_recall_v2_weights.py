"""The table into (0, 1) keeps the order of all sums that the terms can have."""

from __future__ import annotations

import itertools

from planner.recall.v2.bm25 import GRID
from planner.recall.v2.weights import weights


def test_the_map_is_strictly_increasing_over_all_sums_and_stays_inside() -> None:
    found = weights()
    least, most = -GRID * found.of["spk"], GRID * sum(found.of.values())
    scores = [found.score(total) for total in range(least, most + 1)]
    assert all(a < b for a, b in itertools.pairwise(scores))
    assert scores[0] > 0 and scores[-1] < 1


def test_every_knot_is_met() -> None:
    found = weights()
    assert [found.score(round(x * GRID * found.per)) for x, _ in found.knots] == [y for _, y in found.knots]
