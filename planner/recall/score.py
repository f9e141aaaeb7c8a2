"""Exact similarity and fusion: pure, the same bits on any machine (recall.md, `score_model: v1`).

A similarity is a sum of products of integers below 2**53, which float64 adds without rounding in any order;
so neither the processor nor the library that multiplies the matrices can change it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

GRID = 2.0**20
"""Components are rounded to multiples of 2**-20."""

MATCHED = 1.0
"""S(n) of a node that satisfies `match`, and of a seed without a score of its own."""

NO_DECAY = 1.0
"""The decay of a node that was found directly."""


def normalise(vectors: npt.ArrayLike) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return unit-length float32 rows of shape (n, d), and which rows were zero (left as zeros).

    Norms are summed with `math.fsum`, correctly rounded. Raises ValueError for a value that is not finite.
    """
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
    if not np.isfinite(rows).all():
        raise ValueError("a vector holds a value that is not finite")
    peak = np.abs(rows).max(axis=1, initial=0.0)
    zero = peak == 0.0
    scaled = rows / np.where(zero, 1.0, peak)[:, None]
    squares = (scaled * scaled).tolist()
    norms = np.array([math.sqrt(math.fsum(row)) for row in squares])
    unit = scaled / np.where(zero, 1.0, norms)[:, None]
    return unit.astype(np.float32), zero


def similarities(vectors: npt.NDArray[np.float32], queries: npt.NDArray[np.float32]) -> Floats:
    """Return each vector's best similarity over all queries, shape (n,), in 0 … 1.

    `vectors` (n, d) and `queries` (m, d) are unit rows; `sim = Σ rint(x 2**20) rint(y 2**20) / 2**40`.
    """
    if not len(vectors) or not len(queries):
        return np.zeros(len(vectors))
    products = on_grid(vectors) @ on_grid(queries).T
    best: Floats = products.max(axis=1) / (GRID * GRID)
    return np.clip(best, 0.0, 1.0)


def on_grid(vectors: npt.NDArray[np.float32]) -> Floats:
    """Round each component to an integer multiple of 2**-20; returns those integers as float64."""
    return np.rint(vectors.astype(np.float64) * GRID)


def rounding_slack(dimensions: int) -> float:
    """Return by how much a distance computed in SQL may differ from the exact one (recall.md)."""
    return float(dimensions * 2.0**-23 + math.sqrt(dimensions) * 2.0**-20)


def fuse(similarity: float, decay: float, alpha: float) -> float:
    """Return `alpha * similarity + (1 - alpha) * decay`, in that order of evaluation."""
    return alpha * similarity + (1.0 - alpha) * decay


def top_k(node_ids: Sequence[str], scores: Floats, k: int) -> list[int]:
    """Return the positions of the k best by (score desc, node_id)."""
    order = sorted(range(len(node_ids)), key=lambda i: (-scores[i], node_ids[i]))
    return order[:k]
