"""BM25 in integers: equal to the formula, and the same in every order and place."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.recall.v2.bm25 import GRID, Corpus, contributions, idf, min_max

CORPORA = st.builds(Corpus, st.integers(1, 10**7), st.integers(10**7, 2**34))


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_idf_is_the_logarithm_rounded_to_the_grid(nodes: int, further: int) -> None:
    total = nodes + further
    exact = math.log(1 + (total - nodes + 0.5) / (nodes + 0.5))
    assert abs(idf(nodes, total) - exact * GRID) <= 0.5 + 1e-6
    assert idf(nodes, total) >= idf(nodes + 1, total + 1) or further == 0


@given(CORPORA, st.integers(1, 255), st.integers(1, 10**6))
def test_a_contribution_is_that_of_plain_integers_and_near_the_formula(
    corpus: Corpus, frequency: int, length: int
) -> None:
    found = int(contributions(np.array([[frequency]]), np.array([length]), corpus)[0, 0])
    total, nodes = corpus.length, corpus.nodes
    plain = (20 * total * frequency * 65_536) // (8 * total * frequency + 3 * total + 9 * length * nodes)
    assert found == plain
    mean = total / nodes
    formula = frequency * 2.5 / (frequency + 1.5 * (0.25 + 0.75 * length / mean))
    assert math.isclose(found / 65_536, formula, abs_tol=2 / 65_536)


def test_a_term_that_is_not_there_contributes_nothing() -> None:
    assert contributions(np.zeros((2, 3), np.int64), np.array([0, 5]), Corpus(0, 0)).tolist() == [[0] * 3] * 2


def test_min_max_counts_from_the_floor_and_nothing_where_all_are_the_same() -> None:
    assert min_max(np.array([1, 2, 3, 4]), 4, 2).tolist() == [0.0, 0.0, 0.5, 1.0]
    assert min_max(np.array([4, 4]), 4, 4).tolist() == [0.0, 0.0]
