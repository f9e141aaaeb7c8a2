"""The loss of weights is what it says, its derivatives are its own, and its least is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from planner.evaluation.fit.loss import Floats, Lists, Sample, least, loss, rounded

RIDGE = 0.01

shares = st.sampled_from([0.0, 0.0, 0.0, 0.25, 0.5, 1.0])
values = st.integers(-256, 256).map(lambda i: i / 256)


@st.composite
def samples(draw: st.DrawFn, terms: int) -> Sample:
    count = draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(values, min_size=terms, max_size=terms), min_size=count, max_size=count))
    evidence = draw(st.lists(shares, min_size=count, max_size=count))
    return Sample(np.array(rows, dtype=np.float64), np.array(evidence))


def groups(terms: int) -> st.SearchStrategy[list[list[Sample]]]:
    return st.lists(st.lists(samples(terms), min_size=1, max_size=4), min_size=1, max_size=3).filter(
        lambda drawn: any(sample.evidence.any() for group in drawn for sample in group)
    )


weights = st.lists(st.floats(0, 4), min_size=3, max_size=3).map(np.array)


def by_hand(weights: Floats, drawn: list[list[Sample]]) -> float:
    """Sum the loss question by question, with the logarithm written out."""
    telling = [[s for s in group if s.evidence.any()] for group in drawn]
    telling = [group for group in telling if group]
    total = 0.0
    for group in telling:
        for sample in group:
            e = [math.exp(float(z)) for z in sample.terms @ weights]
            others = sum(x for x, share in zip(e, sample.evidence, strict=True) if not share)
            for x, share in zip(e, sample.evidence, strict=True):
                if share:
                    mine = share / sample.evidence.sum() / len(group) / len(telling)
                    total -= mine * math.log(x / (x + others))
    return total + RIDGE * float(weights @ weights)


@settings(deadline=None)
@given(groups(3), weights)
def test_it_is_minus_the_logarithm_of_the_share_of_each_piece_of_evidence(
    drawn: list[list[Sample]], at: Floats
) -> None:
    value, _, _ = loss(at, Lists.of(drawn), RIDGE)
    assert value == pytest.approx(by_hand(at, drawn), rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(groups(3), weights)
def test_gradient_and_hessian_are_those_of_finite_differences(drawn: list[list[Sample]], at: Floats) -> None:
    lists, step = Lists.of(drawn), 1e-5
    _, gradient, hessian = loss(at, lists, RIDGE)
    for i in range(3):
        moved = np.zeros(3)
        moved[i] = step
        (above, g_above, _), (below, g_below, _) = (
            loss(at + moved, lists, RIDGE),
            loss(at - moved, lists, RIDGE),
        )
        assert gradient[i] == pytest.approx((above - below) / (2 * step), abs=1e-6)
        assert hessian[i] == pytest.approx((g_above - g_below) / (2 * step), abs=1e-6)


@settings(deadline=None)
@given(groups(3))
def test_the_least_is_scipys_and_no_weight_is_below_0(drawn: list[list[Sample]]) -> None:
    lists = Lists.of(drawn)
    found = least(lists, RIDGE)
    assert (found >= 0).all()
    theirs = minimize(
        lambda w: loss(w, lists, RIDGE)[:2],
        np.zeros(3),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * 3,
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    assert loss(found, lists, RIDGE)[0] <= theirs.fun + 1e-9
    assert found == pytest.approx(theirs.x, abs=1e-3)


@settings(deadline=None)
@given(groups(3), st.integers(2, 4))
def test_a_corpus_counts_the_same_however_many_questions_it_has(
    drawn: list[list[Sample]], times: int
) -> None:
    many = [drawn[0] * times, *drawn[1:]]
    at = np.array([0.5, 1.0, 2.0])
    assert loss(at, Lists.of(many), RIDGE)[0] == pytest.approx(loss(at, Lists.of(drawn), RIDGE)[0])


@settings(deadline=None)
@given(groups(3))
def test_a_question_whose_evidence_was_not_found_changes_nothing(drawn: list[list[Sample]]) -> None:
    empty = Sample(np.ones((2, 3)), np.zeros(2))
    more = [[*group, empty] for group in drawn]
    at = np.array([0.5, 1.0, 2.0])
    assert loss(at, Lists.of(more), RIDGE)[0] == pytest.approx(loss(at, Lists.of(drawn), RIDGE)[0])


def test_what_tells_evidence_gets_the_weight_and_what_misleads_gets_none() -> None:
    sample = Sample(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0, 0.0]))
    found = least(Lists.of([[sample]]))
    assert found[0] > 1.0
    assert found[1] == 0.0


@settings(deadline=None)
@given(st.lists(st.floats(0, 50), min_size=1, max_size=5), st.sampled_from([1, 16, 256]))
def test_rounded_weights_are_the_nearest_multiples(drawn: list[float], per: int) -> None:
    found = rounded(np.array(drawn), per)
    assert all(isinstance(weight, int) for weight in found)
    assert all(abs(w / per - x) <= 0.5 / per + 1e-12 for w, x in zip(found, drawn, strict=True))
