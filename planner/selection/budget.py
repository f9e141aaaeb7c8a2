"""From the requested budget to the one that binds, and back (selection.md, "Budget")."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from typing import Final, Literal

from planner.errors import RequestError
from planner.ports import Bound
from planner.types import Budget

MAX_REQUEST: Final = 2**53
"""The largest budget that can be asked for: up to here binary64 holds every count of tokens."""


def resolve_budget(
    requested: int,
    *,
    counter: str,
    bound: Bound,
    max_frac: float,
    max_budget: int | None = None,
    context_window: int | None = None,
) -> Budget:
    """Return the budget in force, in tokens of `counter`: configuration and window only lower it.

    `B0 = min(requested, max_budget, floor(context_window / 2))`, `B = floor(B0 * 9 / 10)` for a counter
    that estimates, else `B0`; `cap = floor(max_frac * B)`. Raises RequestError for a request out of range.
    """
    if not 1 <= requested <= MAX_REQUEST:
        raise RequestError(f"budget = {requested} is out of range; ask for 1 to {MAX_REQUEST} tokens")
    half_window = None if context_window is None else context_window // 2
    known = [limit for limit in (max_budget, half_window) if limit is not None]
    ceiling = min(known) if known else None
    narrowed_by: Literal["max_budget", "context_window"] | None = None
    if ceiling is not None and ceiling < requested:
        narrowed_by = "max_budget" if ceiling == max_budget else "context_window"
    return _in_force(
        Budget(
            requested=requested,
            budget=0,
            cap=0,
            counter=counter,
            estimate=bound == "estimate",
            max_frac=max_frac,
            ceiling=ceiling,
            narrowed_by=narrowed_by,
        )
    )


def at_request(budget: Budget, requested: int) -> Budget:
    """Return the budget for another request up to the ceiling, all else equal."""
    return _in_force(replace(budget, requested=requested, narrowed_by=None))


def at_max_frac(budget: Budget, max_frac: float) -> Budget:
    """Return the budget with another share for one source, all else equal."""
    return _in_force(replace(budget, max_frac=max_frac))


def largest_request(budget: Budget) -> int:
    """Return the largest request that is not narrowed; 0 where the ceiling allows none."""
    return MAX_REQUEST if budget.ceiling is None else min(budget.ceiling, MAX_REQUEST)


def request_for(tokens: int, bound: Bound) -> int:
    """Return the smallest request whose budget in force is exactly `tokens`, where nothing narrows it."""
    return -(-tokens * 10 // 9) if bound == "estimate" else tokens


def sufficient_request(tokens: int, budget: Budget) -> int | None:
    """Return the smallest request under which a span of `tokens` fits an empty plan and its source's cap.

    None where the ceiling forbids it. Exact: both limits grow with the request.
    """

    def fits(requested: int) -> bool:
        there = at_request(budget, requested)
        return tokens <= min(there.budget, there.cap)

    requests = range(1, largest_request(budget) + 1)
    found = bisect_left(requests, True, key=fits)
    return requests[found] if found < len(requests) else None


def _in_force(budget: Budget) -> Budget:
    narrowed = budget.requested if budget.ceiling is None else min(budget.requested, budget.ceiling)
    tokens = narrowed * 9 // 10 if budget.estimate else narrowed
    return replace(budget, budget=tokens, cap=math.floor(budget.max_frac * tokens))
