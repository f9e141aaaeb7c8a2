"""Which candidates say again what a better one says (selection.md, "Dedup")."""

from __future__ import annotations

import numpy as np

from planner.selection.weigh import Columns, Integers


def find_duplicates(pool: Columns, rank_order: Integers, threshold: float) -> Integers:
    """Return for each position in key order that of the kept span it duplicates, or -1 where it is kept.

    Walks the pool in rank order. A candidate is a duplicate of the first kept one, by rank, of the same
    source version with `|a ∩ b| / min(len a, len b) > threshold`, or `== 1.0`.

    Only spans that overlap another are walked, and each looks only at the kept ones in its window, the
    stretch of key order outside which nothing overlaps it: O(n log n + overlaps).
    """
    low, high = _windows(pool)
    walked = rank_order[(high - low > 1)[rank_order]]
    starts, ends = pool.start.tolist(), pool.end.tolist()
    rank = np.empty_like(rank_order)
    rank[rank_order] = np.arange(len(rank_order))
    ranks = rank.tolist()
    kept = bytearray(len(ranks))
    duplicate_of = [-1] * len(ranks)
    columns = (walked, pool.start[walked], pool.end[walked], low[walked], high[walked])
    for here, start, end, first, last in zip(*(column.tolist() for column in columns), strict=True):
        original = -1
        there = kept.rfind(1, first, last)
        # Kept spans never nest, so by falling start they also come by falling end.
        while there >= 0 and ends[there] > start:
            if _repeats(start, end, starts[there], ends[there], threshold) and (
                original < 0 or ranks[there] < ranks[original]
            ):
                original = there
            there = kept.rfind(1, first, there)
        if original < 0:
            kept[here] = 1
        else:
            duplicate_of[here] = original
    return np.array(duplicate_of, dtype=np.int64)


def _repeats(start: int, end: int, other_start: int, other_end: int, threshold: float) -> bool:
    """Tell whether two ranges share more than `threshold` of the shorter one, or all of it."""
    shared = (end if end < other_end else other_end) - (start if start > other_start else other_start)
    length, other_length = end - start, other_end - other_start
    shorter = length if length < other_length else other_length
    return shared == shorter or shared / shorter > threshold


def _windows(pool: Columns) -> tuple[Integers, Integers]:
    """Return for each position the range of positions that may overlap it.

    Offsets become their ranks, lifted above those of the versions before, so that one sorted array serves
    all versions. The first that may overlap is the first by which the running maximum of the ends passes
    this start; the last is the last that starts before this end.
    """
    offsets, ranks = np.unique(np.concatenate((pool.start, pool.end)), return_inverse=True)
    lift = pool.version * len(offsets)
    start, end = ranks[: len(lift)] + lift, ranks[len(lift) :] + lift
    reach = np.maximum.accumulate(end)
    return np.searchsorted(reach, start, side="right"), np.searchsorted(start, end, side="left")
