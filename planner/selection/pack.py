"""Filling the budget greedily under a cap for each source (selection.md, "Packing")."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.selection.pool import RankedPool
from planner.types import Budget, Outcome

OUTCOMES = tuple(Outcome)
"""What the codes of a packing mean."""

SELECTED, DUPLICATE, UNPACKABLE, OVER_BUDGET, OVER_SOURCE_CAP = range(5)


@dataclass(frozen=True, slots=True)
class Packing:
    """A code of OUTCOMES for each position of a pool, and the selected positions in packing order."""

    codes: bytearray
    selected: list[int]
    used: int


def pack(pool: RankedPool, budget: Budget) -> Packing:
    """Walk the kept candidates in packing order and give each the first outcome whose test holds."""
    limit, cap, tokens, sources = budget.budget, budget.cap, pool.tokens, pool.sources
    codes = bytearray([DUPLICATE]) * len(tokens)
    selected: list[int] = []
    used = 0
    used_by_source = [0] * pool.source_count
    for i in pool.packing_order:
        size, source = tokens[i], sources[i]
        if size > limit:
            codes[i] = UNPACKABLE
        elif used + size > limit:
            codes[i] = OVER_BUDGET
        elif used_by_source[source] + size > cap:
            codes[i] = OVER_SOURCE_CAP
        else:
            codes[i] = SELECTED
            selected.append(i)
            used += size
            used_by_source[source] += size
    return Packing(codes, selected, used)


def optimality_gap_ppm(pool: RankedPool, budget: Budget, packing: Packing) -> int:
    """Return by how many millionths of the fractional bound the packed weight may miss the optimum.

    The bound is the optimum of the linear relaxation over the kept candidates that can be packed at all.
    Budget and caps are nested, so filling by density solves it (Edmonds 1970, greedy on polymatroids).
    Weights are scaled by the largest, so that no sum overflows.
    """
    scale = pool.weights[0] if pool.weights else 0.0
    if scale == 0.0:
        return 0
    value = math.fsum(pool.weights[i] / scale for i in packing.selected)
    bound = fractional_bound(pool, budget, scale)
    return max(0, math.floor((bound - value) / bound * 1_000_000)) if bound > 0.0 else 0


def fractional_bound(pool: RankedPool, budget: Budget, scale: float = 1.0) -> float:
    """Return the most weight, divided by `scale`, that fits when candidates may be taken in part."""
    weights, tokens, sources = pool.weights, pool.tokens, pool.sources
    room, largest = budget.budget, min(budget.budget, budget.cap)
    room_by_source = [budget.cap] * pool.source_count
    parts = [weights[i] / scale for i in pool.density_order if tokens[i] == 0]
    for i in pool.density_order:
        size, source = tokens[i], sources[i]
        if not 0 < size <= largest or room_by_source[source] == 0:
            continue
        taken = min(size, room, room_by_source[source])
        parts.append(weights[i] / scale * (taken / size))
        room_by_source[source] -= taken
        room -= taken
        if room == 0:
            break
    return math.fsum(parts)
