"""What would have had to be different for a rejected candidate to be selected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.errors import UnknownSpan
from planner.selection.budget import at_max_frac, at_request, largest_request, sufficient_request
from planner.selection.pack import SELECTED, pack
from planner.selection.pool import RankedPool
from planner.types import Budget, SpanRef


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """Values that suffice, each alone and all else equal; None where none was found under the ceilings.

    `sufficient_budget` is a request, before ceilings and the estimate's factor. Not minimal: the greedy
    walk is not monotone in the budget.
    """

    sufficient_budget: int | None = None
    sufficient_max_frac: float | None = None


def counterfactual(pool: RankedPool, budget: Budget, target: SpanRef) -> Counterfactual:
    """Find what suffices for a rejected span, by bisection over runs of the same selector.

    Empty for a selected span, a duplicate and an unsliceable one. Raises UnknownSpan.
    """
    position = next((i for i, c in enumerate(pool.candidates) if c.ref == target), None)
    if position is None:
        if any(c.ref == target for c in pool.unsliceable):
            return Counterfactual()
        raise UnknownSpan(f"{target} is not among the candidates")
    if pool.duplicate_of[position] >= 0 or _is_selected(pool, budget, position):
        return Counterfactual()
    return Counterfactual(_budget(pool, budget, position), _max_frac(pool, budget, position))


def _budget(pool: RankedPool, budget: Budget, position: int) -> int | None:
    """Search between the request and the one under which everything fits or the ceiling stands."""
    ceiling = largest_request(budget)
    total = sum(pool.tokens[i] for i in pool.packing_order)
    everything = sufficient_request(total, budget) or ceiling
    highest, lowest = min(everything, ceiling), min(budget.requested, ceiling)

    def suffices(requested: int) -> bool:
        return _is_selected(pool, at_request(budget, requested), position)

    return _bisect(lowest, highest, suffices)


def _max_frac(pool: RankedPool, budget: Budget, position: int) -> float | None:
    """Search among the caps above the one in force, in tokens, up to the whole budget."""

    def suffices(cap: int) -> bool:
        return _is_selected(pool, at_max_frac(budget, _share(cap, budget.budget)), position)

    cap = _bisect(budget.cap, budget.budget, suffices)
    return None if cap is None else _share(cap, budget.budget)


def _share(cap: int, budget: int) -> float:
    """Return the fraction of the budget whose floor is `cap`, at most 1."""
    share = cap / budget
    return share if math.floor(share * budget) >= cap else math.nextafter(share, 1.0)


def _bisect(insufficient: int, highest: int, suffices: Callable[[int], bool]) -> int | None:
    """Return a value seen to suffice, just above one seen not to; None where the highest does not."""
    if highest <= insufficient or not suffices(highest):
        return None
    sufficient = highest
    while sufficient - insufficient > 1:
        middle = (insufficient + sufficient) // 2
        if suffices(middle):
            sufficient = middle
        else:
            insufficient = middle
    return sufficient


def _is_selected(pool: RankedPool, budget: Budget, position: int) -> bool:
    return pack(pool, budget).codes[position] == SELECTED
