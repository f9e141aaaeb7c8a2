"""The text that delivery has read so far: slices of canonical text, none of them asked for twice."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

from planner.errors import IntegrityError
from planner.hashing import text_hash
from planner.ports import Shelf
from planner.types import NO_TEXT_HASH, SpanRef

Version = tuple[str, int]


def united(refs: Iterable[SpanRef]) -> list[SpanRef]:
    """Return ranges that hold the same bytes, sorted; none of them touch."""
    out: list[SpanRef] = []
    for ref in sorted(refs):
        last = out[-1] if out else None
        if last is not None and last[:2] == ref[:2] and ref.start <= last.end:
            out[-1] = last._replace(end=max(last.end, ref.end))
        elif ref.start < ref.end:
            out.append(ref)
    return out


class Texts:
    """Reads from a shelf what is missing, and keeps it: a version's slices are disjoint and do not touch."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._slices: dict[Version, list[tuple[int, bytes]]] = {}
        self._gone: set[Version] = set()

    def load(self, refs: Iterable[SpanRef]) -> None:
        """Read in one call what is missing of these ranges. Raises IntegrityError for a slice cut short."""
        wanted = united(ref for ref in refs if self._held(ref) is None)
        missing = [gap for ref in wanted for gap in self._missing(ref)]
        if not missing:
            return
        for gap, data in zip(missing, self._shelf.read(missing), strict=True):
            if data is None:
                self._gone.add(gap[:2])
            elif len(data) != gap.end - gap.start:
                raise IntegrityError(f"{gap}: {len(data)} bytes are stored, not {gap.end - gap.start}")
            else:
                self._keep(gap, data)

    def slice(self, ref: SpanRef) -> bytes | None:
        """Return the bytes of a range, read now where they were not; None where the version is gone."""
        data = self._held(ref)
        if data is None:
            self.load([ref])
            data = self._held(ref)
        return data

    def text(self, ref: SpanRef) -> str:
        """Return the text of a range. Raises IntegrityError where it is gone, or cuts into a character."""
        data = self.slice(ref)
        if data is None:
            raise IntegrityError(f"{ref}: its version is gone")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise IntegrityError(f"{ref}: the range cuts into a character") from None

    def is_gone(self, ref: SpanRef) -> bool:
        """Tell whether a version that was read turned out to be gone."""
        return ref[:2] in self._gone

    def check(self, ref: SpanRef, stored: bytes) -> None:
        """Compare a range with its hash, where one is known. Raises IntegrityError."""
        data = None if stored == NO_TEXT_HASH else self.slice(ref)
        if data is not None and text_hash(data) != stored:
            raise IntegrityError(f"{ref}: the text does not match its stored hash", ref=str(ref))

    def _held(self, ref: SpanRef) -> bytes | None:
        """Return the bytes of a range where one slice has them all."""
        slices = self._slices.get(ref[:2], [])
        at = bisect_right(slices, ref.start, key=_start) - 1
        if at < 0 or ref[:2] in self._gone:
            return None
        start, data = slices[at]
        return data[ref.start - start : ref.end - start] if ref.end <= start + len(data) else None

    def _missing(self, ref: SpanRef) -> list[SpanRef]:
        """Return the ranges of `ref` between the slices that are there."""
        if ref[:2] in self._gone:
            return []
        held = self._slices.get(ref[:2], [])
        first = max(bisect_right(held, ref.start, key=_start) - 1, 0)
        edges = [ref.start]
        for start, data in held[first:]:
            if start >= ref.end:
                break
            edges += [max(start, ref.start), max(start + len(data), ref.start)]
        edges.append(max(ref.end, edges[-1]))
        return [ref._replace(start=a, end=b) for a, b in list(pairwise(edges))[::2] if a < b]

    def _keep(self, ref: SpanRef, data: bytes) -> None:
        """Put a slice among those of its version, joined to what it touches."""
        held = self._slices.setdefault(ref[:2], [])
        at = bisect_right(held, ref.start, key=_start)
        low, high, start = at, at, ref.start
        if low and held[low - 1][0] + len(held[low - 1][1]) == ref.start:
            low, start = low - 1, held[low - 1][0]
        if high < len(held) and held[high][0] == ref.end:
            high += 1
        parts = [held[low][1]] if low < at else []
        parts.append(data)
        parts += [held[high - 1][1]] if high > at else []
        held[low:high] = [(start, b"".join(parts))]


def _start(held: tuple[int, bytes]) -> int:
    return held[0]
