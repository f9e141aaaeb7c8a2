"""The table of a fit keeps the order of scores, whatever the candidates were."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from planner.evaluation.fit.knots import MILLION, RISE, knots, rising, strictly

shares = st.floats(0, 1)


@st.composite
def scored(draw: st.DrawFn) -> tuple[int, int, list[float], list[float], list[float]]:
    least, most = draw(st.integers(-40, 0)), draw(st.integers(1, 500))
    n = draw(st.integers(1, 30))
    scores = draw(st.lists(st.integers(least * 256, most * 256), min_size=n, max_size=n))
    evidence = draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=n, max_size=n))
    counts = draw(st.lists(st.floats(0.001, 1), min_size=n, max_size=n))
    return least, most, [score / 4_096 for score in scores], evidence, counts


@settings(deadline=None)
@given(scored())
def test_knots_reach_over_all_sums_and_rise_inside_0_and_1(
    drawn: tuple[int, int, list[float], list[float], list[float]],
) -> None:
    least, most, *columns = drawn
    found = knots(*map(np.array, columns), least, most, 16)
    assert found[0][0] <= least and found[-1][0] >= most
    assert found[0][1] > 0 and found[-1][1] < MILLION
    assert all(a[0] < b[0] and b[1] - a[1] >= RISE for a, b in itertools.pairwise(found))


@settings(deadline=None)
@given(st.lists(st.tuples(shares, st.floats(0.01, 10)), min_size=1, max_size=30))
def test_rising_is_the_isotonic_regression(pairs: list[tuple[float, float]]) -> None:
    values, masses = zip(*pairs, strict=True)
    theirs = isotonic_regression(values, weights=masses).x
    assert rising(values, masses) == pytest.approx(list(theirs), abs=1e-9)


@settings(deadline=None)
@given(st.lists(st.integers(0, MILLION), min_size=1, max_size=100).map(sorted))
def test_values_that_never_fall_are_made_to_rise_and_others_are_kept(values: list[int]) -> None:
    found = strictly(values)
    assert all(b - a >= RISE for a, b in itertools.pairwise(found))
    assert found[0] > 0 and found[-1] < MILLION
    assert strictly(found) == found


def test_a_knot_is_the_share_of_evidence_beside_it_and_gaps_are_bridged() -> None:
    scores = np.array([0.0, 0.25, 1.1, 3.0, 3.0])
    evidence = np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    found = knots(scores, evidence, np.array([1.0, 1.0, 1.0, 3.0, 1.0]), 0, 50, 16)
    assert [x for x, _ in found] == [0, 16, 32, 48, 64]
    assert [y for _, y in found] == [50, 100, 375_000, 750_000, 750_050]
