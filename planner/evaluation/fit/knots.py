"""The table that maps a score into (0, 1): the share of candidates that are evidence, never falling; pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.evaluation.fit.loss import Floats, Ints

MILLION = 1_000_000

RISE = 50
"""By how many millionths each knot is above the one before, at least: equal values would lose the order."""

Knots = list[tuple[int, int]]


def knots(scores: Floats, evidence: Floats, counts: Floats, least: int, most: int, per: int) -> Knots:
    """Return knots a unit of score apart, from `least` to `most` (in 1/per), in 1/per and millionths.

    `scores`, whether each is `evidence` (1 or 0), and how much it `counts` have shape (n,). The value of a
    knot is the share of evidence among the scores that are nearest to it; those that have none beside them
    lie between their neighbours; then they are made to rise.
    """
    first, last = least // per, -(-most // per)
    nearest: Ints = np.rint(scores).astype(np.int64) - first
    places = last - first + 1
    masses = np.bincount(nearest, counts, minlength=places)
    found = np.bincount(nearest, counts * evidence, minlength=places)
    held = np.flatnonzero(masses)
    shares = rising((found[held] / masses[held]).tolist(), masses[held].tolist())
    smooth = np.interp(np.arange(places), held, shares)
    values = strictly([int(value) for value in np.rint(smooth * MILLION)])
    return [(per * (first + place), value) for place, value in enumerate(values)]


def rising(values: Sequence[float], masses: Sequence[float]) -> list[float]:
    """Return the nearest values that never fall, by squares that masses weigh (pool adjacent violators).

    Ayer et al. 1955; each block is the weighted mean of its values.
    """
    blocks: list[tuple[float, float, int]] = []
    for value, mass in zip(values, masses, strict=True):
        total, weight, count = value * mass, mass, 1
        while blocks and blocks[-1][0] * weight >= total * blocks[-1][1]:
            before = blocks.pop()
            total, weight, count = total + before[0], weight + before[1], count + before[2]
        blocks.append((total, weight, count))
    return [total / weight for total, weight, count in blocks for _ in range(count)]


def strictly(values: Sequence[int]) -> list[int]:
    """Return millionths that rise by RISE at least and stay between 0 and a million; they must not fall."""
    out: list[int] = []
    for place, value in enumerate(values):
        above = out[-1] + RISE if out else RISE
        out.append(min(max(value, above), MILLION - RISE * (len(values) - place)))
    return out
