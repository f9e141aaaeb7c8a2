"""Delivery without a plan and without a store: the ranked results of any retriever become a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.deliver.deliver import deliver as pack
from planner.deliver.results import Result, shelve
from planner.ports import TokenCounter
from planner.tokens import counter as counter_named
from planner.types import Delivery, OnMisfit, Unit


def deliver(
    results: Iterable[Result | Mapping[str, Any]],
    unit: Unit = "chunk",
    *,
    budget_tokens: int,
    counter: str | TokenCounter = "utf8-script-v1",
    neighbours: int = 1,
    on_misfit: OnMisfit | None = None,
    max_frac: float | None = None,
) -> Delivery:
    """Pack ranked results, best first, into a text of at most `budget_tokens`, framing and labels included.

    A result says its `source`, where it starts there in bytes, its `text`, and what else is known; with the
    source's `record`, a text or a reader of it, it can become a `window` or `record` of it too. Raises
    RequestError naming the result, UnknownCounter, InsufficientEvidence with a budget that suffices,
    CounterError.
    """
    hits, shelf = shelve(results)
    chosen = counter_named(counter, {}) if isinstance(counter, str) else counter
    return pack(
        hits,
        shelf,
        unit=unit,
        budget=budget_tokens,
        counter=chosen,
        neighbours=neighbours,
        on_misfit=on_misfit,
        max_frac=max_frac,
    )
