"""Why nothing was delivered, and the budget that would have been enough."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from planner.deliver.bundle import Bundle
from planner.deliver.pack import Packer
from planner.deliver.units import Run, least_size
from planner.errors import InsufficientEvidence
from planner.selection.budget import MAX_REQUEST
from planner.types import Hit

_LOOK: Final = 64
"""Tokens whose text is looked at to find where a hit's first grapheme cluster ends."""


def nothing_fits(packer: Packer, hits: Sequence[Hit], max_frac: float | None) -> InsufficientEvidence:
    """Return the refusal, with the smallest budget under which one of the hits is delivered, if only in part.

    Exact: into an empty bundle a hit is admitted if its whole unit fits or, where cuts are allowed, the
    smallest part of it that is tried. Hits without any are refused with what the empty bundle takes.
    """
    bundle = packer.bundle
    best: int | None = None if hits else bundle.tokens(bundle.empty)
    tried: set[str] = set()

    def least(hit: Hit) -> int:
        return least_size(packer.document(hit), hit, packer.possible(hit, packer.unit))

    for hit in sorted(hits, key=least):
        for run in _tries(packer, hit, best, tried):
            needed = _needed(bundle, hit, run, max_frac)
            best = needed if best is None else min(best, needed)
    assert best is not None
    return InsufficientEvidence(
        f"nothing fits: the framing and the smallest evidence take more than {bundle.budget} tokens of "
        f"{bundle.measure.counter.name}; a budget of {best} would do",
        reason="nothing_fits",
        sufficient_budget=best,
    )


def _tries(packer: Packer, hit: Hit, best: int | None, tried: set[str]) -> Iterator[Run]:
    """Yield the runs that are tried of a hit, but for those that need more than the best so far."""
    document, unit = packer.document(hit), packer.possible(hit, packer.unit)
    if packer.cuts and not document.is_erased(hit.ref):
        yield from _smallest_parts(packer, hit, packer.run(hit, unit))
    if unit == "record":
        if hit.document in tried:
            return
        tried.add(hit.document)
    if best is None or packer.bundle.measure.least(least_size(document, hit, unit)) < best:
        yield packer.run(hit, unit)


def _smallest_parts(packer: Packer, hit: Hit, whole: Run) -> Iterator[Run]:
    """Yield the two parts with which cutting begins: the hit's own passages, its first grapheme cluster."""
    if whole.unit != "chunk":
        yield packer.around(hit, whole, 0, 0)
    look = _LOOK
    while not (ends := packer.ends(hit, look)):
        look *= 2
    yield packer.beginning(hit, whole, ends[0])


def _needed(bundle: Bundle, hit: Hit, run: Run, max_frac: float | None) -> int:
    """Return the smallest budget under which a run is admitted into an empty bundle."""
    alone = bundle.with_run(bundle.empty, hit, run)
    tokens = max(bundle.tokens(alone), bundle.measure.least(run.size), 1)
    if max_frac is None:
        return tokens
    share = max(bundle.by_source(alone).values())
    return bisect_left(range(MAX_REQUEST), True, lo=tokens, key=lambda b: share <= math.floor(max_frac * b))
