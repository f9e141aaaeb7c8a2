"""Books: the chains of versions that documents are made of, and the stretches that surround hits. Pure.

A book is a source version with all that was appended to it, up to a transaction. A document is one book, or
the books of a conversation whose turns are sources of their own; its spans are numbered through all of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planner.types import SourceClass, SpanRef


class Book(NamedTuple):
    """The versions of one source from one that extends nothing to the last that follows it, both included."""

    source_id: str
    first_tx: int
    last_tx: int


class Stretch(NamedTuple):
    """So many spans `back` and `ahead` (None: all) of a place in a book; the place's own span is ahead."""

    book: Book
    version_tx: int
    start: int
    end: int
    back: int
    ahead: int | None


@dataclass(frozen=True, slots=True)
class Shelved:
    """A source as of a transaction: where its books begin, which version was its newest then, and is now.

    `gone` says that it was withdrawn by then, or is erased; None that it came later.
    """

    source_id: str
    source_class: SourceClass
    conversation_id: str | None
    position: int | None
    bases: tuple[int, ...]
    latest: int | None
    gone: bool | None
    newest: int

    def book(self, version_tx: int, as_of: int) -> Book | None:
        """Return the book that holds a version, up to `as_of`; None where no version begins it."""
        following = bisect_right(self.bases, version_tx)
        if following == 0:
            return None
        last = self.bases[following] - 1 if following < len(self.bases) else self.newest
        return Book(self.source_id, self.bases[following - 1], max(version_tx, min(last, as_of)))

    def current_book(self, as_of: int) -> Book | None:
        """Return the book that was current at `as_of`, None where the source came later."""
        return None if self.latest is None else self.book(self.latest, as_of)

    def superseded_by(self, version_tx: int) -> int | None:
        """Return the newest version where it is of a later book than this one."""
        return self.newest if self.bases and self.bases[-1] > version_tx else None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a span lies: in which of a document's books, with which ordinal there."""

    book: int
    ordinal: int
    ref: SpanRef


def whole(books: Sequence[Book]) -> Iterator[Stretch]:
    """Yield the stretches that are all of these books."""
    return (_beginning(book, None) for book in books)


def around(
    books: Sequence[Book], lengths: Sequence[int], places: Sequence[Place], neighbours: int
) -> set[Stretch]:
    """Return the stretches that are the spans at these places with `neighbours` on each side."""
    found: set[Stretch] = set()
    for place in places:
        ref, behind = place.ref, lengths[place.book] - 1 - place.ordinal
        back, ahead = min(neighbours, place.ordinal), min(neighbours, behind)
        found.add(Stretch(books[place.book], ref.version_tx, ref.start, ref.end, back, ahead + 1))
        found.update(_before(books, lengths, place.book, neighbours - back))
        found.update(_after(books, lengths, place.book, neighbours - ahead))
    return found


def _before(books: Sequence[Book], lengths: Sequence[int], here: int, wanted: int) -> Iterator[Stretch]:
    for i in range(here - 1, -1, -1):
        if wanted <= 0:
            return
        yield Stretch(books[i], books[i].last_tx + 1, 0, 0, min(wanted, lengths[i]), 0)
        wanted -= lengths[i]


def _after(books: Sequence[Book], lengths: Sequence[int], here: int, wanted: int) -> Iterator[Stretch]:
    for i in range(here + 1, len(books)):
        if wanted <= 0:
            return
        yield _beginning(books[i], min(wanted, lengths[i]))
        wanted -= lengths[i]


def _beginning(book: Book, ahead: int | None) -> Stretch:
    return Stretch(book, book.first_tx, 0, 0, 0, ahead)
