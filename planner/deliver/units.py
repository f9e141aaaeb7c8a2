"""What a hit becomes under a unit: the ranges that it shows, in reading order (delivery.md, "Units")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from planner.deliver.documents import OpenDocument
from planner.deliver.text import united
from planner.types import Hit, SpanRef, Whole

SIZES: Final[tuple[Whole, ...]] = ("chunk", "window", "record")
"""Each holds the one before."""


@dataclass(frozen=True, slots=True)
class Run:
    """A hit's ranges in reading order, and how many bytes of its unit a cut left out on either side.

    Of an erased hit the range is named and nothing is shown.
    """

    unit: Whole
    ranges: tuple[SpanRef, ...]
    before: int = 0
    after: int = 0
    erased: bool = False

    @property
    def size(self) -> int:
        """The bytes that are shown."""
        return 0 if self.erased else sum(ref.end - ref.start for ref in united(self.ranges))


def possible(document: OpenDocument, hit: Hit, unit: Whole) -> Whole:
    """Return what a hit can become: the chunk where nothing is known to surround it."""
    is_surrounded = document.whole and not document.is_erased(hit.ref) and document.positions(hit.ref)
    return unit if is_surrounded else "chunk"


def whole_run(document: OpenDocument, hit: Hit, unit: Whole, neighbours: int) -> Run:
    """Return the run of a whole unit that is possible."""
    if unit == "chunk":
        return Run(unit, (hit.ref,), erased=document.is_erased(hit.ref))
    if unit == "record" and not document.conversation:
        return Run(unit, _texts(document))
    held = document.positions(hit.ref)
    assert held is not None
    return Run(unit, stretch(document, hit, unit, *room(document, held, unit, neighbours)))


def room(document: OpenDocument, held: tuple[int, int], unit: Whole, neighbours: int) -> tuple[int, int]:
    """Return how many passages a unit has before and after those of the hit."""
    before, after = held[0], document.length - 1 - held[1]
    return (before, after) if unit == "record" else (min(before, neighbours), min(after, neighbours))


def stretch(document: OpenDocument, hit: Hit, unit: Whole, before: int, after: int) -> tuple[SpanRef, ...]:
    """Return the ranges of the hit's passages with so many before and after them.

    Of a conversation each message is a range; of another document the text from the first passage to the
    last is one, for a record on to the very ends of the text. A long message may be several passages.
    """
    held = document.positions(hit.ref)
    assert held is not None
    first, last = held[0] - before, held[1] + after
    document.reach(hit.ref, first, last)
    known = (document.passages.get(position) for position in range(first, last + 1))
    refs = [passage.ref for passage in known if passage and not document.is_erased(passage.ref)]
    if document.conversation:
        return tuple(sorted(set(refs), key=document.order))
    texts = _texts(document)
    if unit == "record" and first == 0:
        refs.append(texts[0]._replace(end=0))
    if unit == "record" and last == document.length - 1:
        refs.append(texts[-1]._replace(start=texts[-1].end))
    return tuple(sorted(_hulls([*refs, hit.ref]), key=document.order))


def part(document: OpenDocument, whole: Run, ranges: tuple[SpanRef, ...]) -> Run:
    """Return a part of a whole run, with the bytes left out before and after it."""
    start, end = document.place(whole.ranges[0])[0], document.place(whole.ranges[-1])[1]
    shown_from, shown_to = document.place(ranges[0])[0], document.place(ranges[-1])[1]
    return Run(whole.unit, ranges, shown_from - start, end - shown_to)


def least_size(document: OpenDocument, hit: Hit, unit: Whole) -> int:
    """Return bytes that a unit has at least, as far as it can be told without a look at the shelf."""
    if document.is_erased(hit.ref):
        return 0
    if unit != "record":
        return hit.ref.end - hit.ref.start
    return document.length if document.conversation else sum(ref.end for ref in _texts(document))


def _texts(document: OpenDocument) -> tuple[SpanRef, ...]:
    """Return the whole text of each volume that has one."""
    volumes = (v for v in document.volumes.values() if v.byte_length and not v.erased)
    texts = (SpanRef(v.source_id, v.version_tx, 0, v.byte_length) for v in volumes)
    return tuple(sorted(texts, key=document.order))


def _hulls(refs: Iterable[SpanRef]) -> Iterable[SpanRef]:
    """Return for each version the range from the first byte to the last of its refs."""
    hulls: dict[tuple[str, int], SpanRef] = {}
    for ref in refs:
        hull = hulls.setdefault(ref[:2], ref)
        hulls[ref[:2]] = hull._replace(start=min(hull.start, ref.start), end=max(hull.end, ref.end))
    return hulls.values()
