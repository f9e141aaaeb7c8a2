"""Which candidates say again what a better one says (selection.md, "Dedup")."""

from __future__ import annotations

import numpy as np

from planner.selection.weigh import Booleans, Columns, Integers


def find_duplicates(pool: Columns, rank_order: Integers, threshold: float) -> Integers:
    """Return for each position in key order that of the kept span it duplicates, or -1 where it is kept.

    Walks the pool in rank order. A candidate is a duplicate of the first kept one, by rank, of the same
    source version with `|a ∩ b| / min(len a, len b) > threshold`, or `== 1.0`.

    The threshold is above 0.5. Only spans that share more than half with another are walked, and each
    looks only at the kept ones in its window, the stretch of key order outside which nothing overlaps it:
    O(n log n + overlaps).
    """
    low, high = _windows(pool)
    suspects = np.flatnonzero(high - low > 1)
    suspects = suspects[_share_half(pool.where(suspects))]
    suspected = np.zeros(len(low), dtype=np.bool_)
    suspected[suspects] = True
    walked = rank_order[suspected[rank_order]]
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

    The first that may is the first by which the running maximum of the ends passes this start; the last is
    the last that starts before this end.
    """
    start, end = _lifted(pool.version, pool.start, pool.end)
    reach = np.maximum.accumulate(end)
    return np.searchsorted(reach, start, side="right"), np.searchsorted(start, end, side="left")


def _share_half(pool: Columns) -> Booleans:
    """Tell which spans may share more than half of the shorter one with another.

    What is shared then holds the middle of the shorter span, strictly inside both: so the one holds a middle
    beside its own, and the middle of the other is held by another.
    """
    start, end, middle = _lifted(pool.version, 2 * pool.start, 2 * pool.end, pool.start + pool.end)
    middles, ends = np.sort(middle), np.sort(end)
    holds = np.searchsorted(middles, end, side="left") - np.searchsorted(middles, start, side="right")
    held_by = np.searchsorted(start, middle, side="left") - np.searchsorted(ends, middle, side="right")
    return (holds > 1) | (held_by > 1)


def _lifted(version: Integers, *points: Integers) -> list[Integers]:
    """Return points as ranks, lifted above those of the versions before: one array serves all versions."""
    values, ranks = np.unique(np.concatenate(points), return_inverse=True)
    return [column + version * len(values) for column in np.split(ranks, len(points))]
