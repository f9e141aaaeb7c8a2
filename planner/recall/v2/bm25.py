"""BM25 in integers (k1 1.5, b 0.75): the same bits in SQL and here, on any machine. Pure.

A term that is `tf` times in a text of `length` terms, among N texts of L terms together, contributes
`weight * (20 L tf 2**16 // (8 L tf + 3 L + 9 length N))`: tf (k1 + 1) / (tf + k1 (1 - b + b length N / L)) in
multiples of 2**-16. With tf ≤ 255 everything stays below 2**63 for scopes of up to 2**34 terms.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

GRID = 256
"""Features and the weights of terms are multiples of 1/256, kept as integers."""

_EXACT = Context(prec=30, rounding=ROUND_HALF_EVEN)


class Corpus(NamedTuple):
    """What BM25 knows of a scope as of a plan: how many texts it has, and their terms in all."""

    nodes: int
    length: int


@lru_cache(maxsize=1 << 16)
def idf(nodes: int, total: int) -> int:
    """Return ln(1 + (N - n + 1/2) / (n + 1/2)) in multiples of 1/256, for a term in n = `nodes` of N texts.

    The logarithm is correctly rounded decimal arithmetic: a C library's differs in its last bit.
    """
    ratio = _EXACT.divide(Decimal(2 * max(total, nodes) + 2), Decimal(2 * nodes + 1))
    return int(_EXACT.multiply(_EXACT.ln(ratio), Decimal(GRID)).to_integral_value(ROUND_HALF_EVEN))


def contributions(frequency: Ints, length: Ints, corpus: Corpus) -> Ints:
    """Return what terms contribute before their weights, shape (n, m), of frequencies in n texts."""
    scaled = corpus.length * frequency
    below = 8 * scaled + 3 * corpus.length + 9 * length[:, None] * corpus.nodes
    return np.asarray((20 * 65_536) * scaled // np.maximum(below, 1), dtype=np.int64)


def min_max(values: npt.NDArray[np.int64] | Floats, best: float, floor: float) -> Floats:
    """Return (x - floor) / (best - floor), not below 0; nothing where the two are the same."""
    if best <= floor:
        return np.zeros(len(values))
    scaled: Floats = (np.asarray(values, dtype=np.float64) - floor) / (best - floor)
    return np.maximum(scaled, 0.0)


def on_grid(values: Floats) -> Ints:
    """Return values as the nearest multiples of 1/256."""
    return np.rint(values * GRID).astype(np.int64)
