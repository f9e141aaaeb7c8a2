"""What a candidate is worth, and the order that follows from it (selection.md, "Weight")."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from planner.errors import BadCandidate
from planner.types import Candidate, SelectionPolicy

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

SOURCE_CLASSES = ("truth", "cache")

LIMIT = 2**62
"""Offsets, transactions and counts are below it, so that the sum of two of them is 64 bits wide."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A valid pool, one array a field, all in **key order** `(source_id, version_tx, start, end)`.

    `row` is the place in the input. `source` numbers the source ids in code-point order, `version` the
    pairs of source and version; both from 0 and ascending. `weight` is w.
    """

    row: Integers
    source: Integers
    version: Integers
    start: Integers
    end: Integers
    tokens: Integers
    weight: Floats

    def where(self, rows: Booleans | Integers) -> Columns:
        """Return some rows, by a mask or by ascending positions."""
        return Columns(*(getattr(self, field.name)[rows] for field in fields(self)))

    def rank_order(self) -> Integers:
        """Return the positions in rank order: w descending, then the key."""
        return np.argsort(-self.weight, kind="stable")


def weigh(candidates: Sequence[Candidate], policy: SelectionPolicy) -> Columns:
    """Check a pool, weigh it and put it into key order.

    `w = score * kind_prior`, then `* cache_discount` for class `cache`. Raises BadCandidate for a score
    that is NaN, infinite or negative, an unknown kind or class, a count out of range, an empty range or a
    repeated span.
    """
    source, version_tx, start, end = _keys(candidates)
    tokens = _integers(candidates, "tokens", [c.tokens for c in candidates])
    weight = _weights(candidates, policy)
    row = np.lexsort((end, start, version_tx, source))
    source, version_tx, start, end = source[row], version_tx[row], start[row], end[row]
    same_version = (source[1:] == source[:-1]) & (version_tx[1:] == version_tx[:-1])
    repeated = same_version & (start[1:] == start[:-1]) & (end[1:] == end[:-1])
    for i in np.flatnonzero(repeated)[:1].tolist():
        raise BadCandidate(f"{candidates[row[i]].ref}: the span is in the pool more than once")
    version = np.zeros(len(row), dtype=np.int64)
    version[1:] = np.cumsum(~same_version)
    return Columns(row, source, version, start, end, tokens[row], weight[row])


def _keys(candidates: Sequence[Candidate]) -> tuple[Integers, Integers, Integers, Integers]:
    ids = [c.source_id for c in candidates]
    number = {name: i for i, name in enumerate(sorted(set(ids)))}
    for name in number:
        if not name or not _is_unicode(name):
            raise BadCandidate(f"source_id = {name!r} is empty or not valid Unicode")
    source = np.array([number[name] for name in ids], dtype=np.int64)
    version_tx = _integers(candidates, "version_tx", [c.version_tx for c in candidates])
    start = _integers(candidates, "start", [c.start for c in candidates])
    end = _integers(candidates, "end", [c.end for c in candidates])
    for i in np.flatnonzero(end <= start)[:1].tolist():
        raise BadCandidate(f"{candidates[i].ref}: the range is empty; end must be greater than start")
    return source, version_tx, start, end


def _weights(candidates: Sequence[Candidate], policy: SelectionPolicy) -> Floats:
    score = np.array([c.score for c in candidates], dtype=np.float64)
    for i in np.flatnonzero(~(np.isfinite(score) & (score >= 0)))[:1].tolist():
        raise BadCandidate(f"{candidates[i].ref}: score = {score[i]} is not a finite number, 0 or more")
    priors, discount = dict(policy.kind_priors), {"truth": 1.0, "cache": policy.cache_discount}
    try:
        prior = np.array([priors[c.kind] for c in candidates], dtype=np.float64)
        factor = np.array([discount[c.source_class] for c in candidates], dtype=np.float64)
    except KeyError:
        raise _unknown_word(candidates, policy) from None
    return (score + 0.0) * prior * factor  # + 0.0 turns -0.0 into 0.0


def _integers(candidates: Sequence[Candidate], field: str, values: list[int]) -> Integers:
    """Return a column of integers from 0 below LIMIT; `array` refuses fractions, which NumPy would cut."""
    try:
        column = np.array(array("q", values), dtype=np.int64)
    except (TypeError, OverflowError):
        column = np.array([-1])
    if column.min(initial=0) < 0 or column.max(initial=0) >= LIMIT:
        wrong = next(i for i, v in enumerate(values) if not isinstance(v, int) or not 0 <= v < LIMIT)
        raise BadCandidate(
            f"{candidates[wrong].ref}: {field} = {values[wrong]!r} is not an integer from 0 to 2^62 - 1"
        )
    return column


def _unknown_word(candidates: Sequence[Candidate], policy: SelectionPolicy) -> BadCandidate:
    """Name the first kind that has no prior or, where all have one, the first class that is none."""
    for candidate in candidates:
        if candidate.kind not in policy.kind_priors:
            known = ", ".join(policy.kind_priors)
            return BadCandidate(f"{candidate.ref}: unknown kind {candidate.kind!r}; the kinds are {known}")
    wrong = next(c for c in candidates if c.source_class not in SOURCE_CLASSES)
    return BadCandidate(f"{wrong.ref}: class {wrong.source_class!r} is not {' or '.join(SOURCE_CLASSES)}")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
