"""A document as far as delivery has looked at it; the shelf is asked for more of its passages when needed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from planner.errors import UnknownSpan
from planner.ports import Shelf
from planner.types import Document, Passage, SpanRef, Volume

AT_LEAST: Final = 16
"""Passages on each side that one look at the shelf brings at least, when a run grows."""

Version = tuple[str, int]


class OpenDocument:
    """Passages by position and by place, and the volumes that hold them.

    Distances are in bytes: of a conversation those of its messages that are there, whatever is between them
    and in however many volumes; of another document those of its text.
    """

    def __init__(self, document: Document, shelf: Shelf) -> None:
        self.key = document.key
        self.conversation = document.conversation
        self.length = document.length
        self.whole = document.whole
        self.volumes: dict[Version, Volume] = {}
        self.passages: dict[int, Passage] = {}
        self._shelf = shelf
        self._order: dict[Version, int] = {}
        self._absorb(document)

    def volume(self, ref: SpanRef) -> Volume:
        """Return the volume that holds a range. Raises UnknownSpan."""
        try:
            return self.volumes[ref[:2]]
        except KeyError:
            raise UnknownSpan(f"{ref} is not in the document {self.key!r}") from None

    def is_erased(self, ref: SpanRef) -> bool:
        """Tell whether the volume that held a range is erased."""
        return self.volume(ref).erased

    def erase(self, ref: SpanRef) -> None:
        """Note that the volume that held a range is erased."""
        self.volumes[ref[:2]] = replace(self.volume(ref), erased=True)

    def order(self, ref: SpanRef) -> tuple[int, int, int]:
        """Return what sorts ranges into reading order, now and when more of the document is known."""
        return self._order[ref[:2]], ref.start, ref.end

    def place(self, ref: SpanRef) -> tuple[int, int]:
        """Return how far the ends of a range are from the first known byte of the document."""
        passage = self.passage(ref) if self.conversation else None
        if passage is None:
            return ref.start, ref.end
        start = self._offsets[passage.position]
        if self.is_erased(ref):
            return start, start
        return start + ref.start - passage.ref.start, start + ref.end - passage.ref.start

    def positions(self, ref: SpanRef) -> tuple[int, int] | None:
        """Return the first and last position that a range covers.

        None where no known passage is in it; of a conversation, where it is not in a single message.
        """
        exact = self._by_ref.get(ref)
        if exact is not None:
            return exact.position, exact.position
        if self.conversation:
            message = self.passage(ref)
            inside = [message.position] if message and ref.end <= message.ref.end else []
        else:
            places = self._starts.get(ref[:2], ())
            inside = [at for start, at in places if start < ref.end and self.passages[at].ref.end > ref.start]
        return (min(inside), max(inside)) if inside else None

    def passage(self, ref: SpanRef) -> Passage | None:
        """Return the passage that a range is, or that holds its first byte."""
        exact = self._by_ref.get(ref)
        if exact is not None:
            return exact
        starts = self._starts.get(ref[:2], [])
        at = bisect_right(starts, (ref.start, self.length)) - 1
        found = self.passages[starts[at][1]] if at >= 0 else None
        return found if found is not None and found.ref.end > ref.start else None

    def inside(self, ref: SpanRef) -> Iterator[Passage]:
        """Yield the known passages that lie wholly in a range."""
        starts = self._starts.get(ref[:2], [])
        for _, position in starts[bisect_left(starts, (ref.start,)) :]:
            passage = self.passages[position]
            if passage.ref.start >= ref.end:
                return
            if passage.ref.end <= ref.end:
                yield passage

    def reach(self, ref: SpanRef, first: int, last: int) -> None:
        """See to it that the passages from position `first` to `last`, around `ref`, are known."""
        wanted = range(max(first, 0), min(last, self.length - 1) + 1)
        if all(position in self.passages for position in wanted):
            return
        held = self.positions(ref) or (0, 0)
        sides = max(held[0] - wanted.start, wanted.stop - held[1], AT_LEAST)
        found = self._shelf.documents([ref], None if len(wanted) == self.length else sides)
        self._absorb(found[self.key])

    def _absorb(self, document: Document) -> None:
        """Take in volumes and passages, those that are known already too."""
        self.volumes.update(((v.source_id, v.version_tx), v) for v in document.volumes)
        self.passages.update((passage.position, passage) for passage in document.passages)
        self._by_ref = {passage.ref: passage for passage in self.passages.values()}
        self._starts: dict[Version, list[tuple[int, int]]] = {}
        self._offsets: dict[int, int] = {}
        offset = 0
        for position in sorted(self.passages):
            ref = self.passages[position].ref
            self._offsets[position] = offset
            offset += 0 if self.is_erased(ref) else ref.end - ref.start
            # Any position of a volume is before any of the next: the first that is seen will do.
            self._order.setdefault(ref[:2], position)
            self._starts.setdefault(ref[:2], []).append((ref.start, position))
        for starts in self._starts.values():
            starts.sort()
        for version in self.volumes:
            self._order.setdefault(version, self.length)
