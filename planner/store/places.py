"""Where spans lie: in which book of which source, as of the plan that selected them; looked up once each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from planner.store.books import Book, Place, Shelved
from planner.store.connect import Connection, by_name, run
from planner.store.read import keys
from planner.types import NO_TEXT_HASH, SpanRef

Text = tuple[Book, str, bytes]
"""What makes spans equal: they are of one book, one kind, and have the same text."""


class Places:
    """The places of spans in one scope, on a connection whose snapshot lasts for the whole delivery."""

    def __init__(self, conn: Connection, scope_id: UUID, as_of: int) -> None:
        """Take a scoped connection and the transaction of the plan."""
        self.conn, self.scope_id, self.as_of = conn, scope_id, as_of
        self.sources: dict[str, Shelved] = {}
        self._asked: set[SpanRef] = set()
        self._books: dict[SpanRef, Book] = {}
        self._cited: dict[str, set[Book]] = {}
        self._ordinals: dict[SpanRef, int] = {}

    def ask(self, name: Any, **params: Any) -> Any:
        """Run a statement inside the scope, as of the plan."""
        return run(self.conn, name, {"scope_id": self.scope_id, "as_of": self.as_of, **params})

    def learn(self, refs: Iterable[SpanRef]) -> None:
        """Look spans up that were not looked up yet; those that the ledger lacks have no place."""
        unknown = [ref for ref in dict.fromkeys(refs) if ref not in self._asked]
        if not unknown:
            return
        self._asked.update(unknown)
        self._learn_sources(unknown)
        for i, ordinal in self.ask("deliver_ordinals", **keys(unknown)):
            ref = unknown[i - 1]
            book = self.sources[ref.source_id].book(ref.version_tx, self.as_of)
            if book is not None:
                self._books[ref], self._ordinals[ref] = book, ordinal
                self._cited.setdefault(self._key(ref, book), set()).add(book)

    def key(self, ref: SpanRef) -> str | None:
        """Return the key of the document that holds a span, None where it has no place in any."""
        book = self._books.get(ref)
        return None if book is None else self._key(ref, book)

    def books(self, key: str) -> list[Book]:
        """Return the books of a document in reading order.

        Those of a conversation are of the turns that were there as of the plan, and are not erased since;
        what any span that was looked up is of belongs to its document in any case.
        """
        books = set(self._cited[key])
        cited = {book.source_id for book in books}
        conversation = self.sources[min(cited)].conversation_id
        if conversation is not None:
            others = (s for s in self.sources.values() if s.conversation_id == conversation and not s.gone)
            current = (s.current_book(self.as_of) for s in others if s.source_id not in cited)
            books.update(book for book in current if book is not None)
        return sorted(books, key=lambda book: (self.sources[book.source_id].position or 0, book))

    def places(self, books: Sequence[Book], refs: Sequence[SpanRef]) -> tuple[Place, ...]:
        """Return where spans lie in the books of their document."""
        index = {book: i for i, book in enumerate(books)}
        return tuple(Place(index[self._books[ref]], self._ordinals[ref], ref) for ref in refs)

    def standing(self, spans: Sequence[tuple[SpanRef, bytes]]) -> list[SpanRef]:
        """Return for each span, with the hash of its text, the one that stands for it as of the plan.

        An unchanged text keeps its node, and the node the version that it was derived from: so a plan may
        name a version that was superseded before it was made. The equal text of the version that was current
        then stands for it, and what surrounds that. Of several equal ones it is the one of the same number,
        as the ids of nodes count them.
        """
        self._learn_sources(ref for ref, _ in spans)
        moves = {ref: move for ref, hashed in spans if hashed != NO_TEXT_HASH and (move := self._move(ref))}
        hashes = {hashed for ref, hashed in spans if ref in moves}
        equals = self.equals({book for move in moves.values() for book in move}, hashes)
        numbers = {ref: (text, n) for text, refs in equals.items() for n, ref in enumerate(refs)}
        stands = {}
        for ref, (_, current) in moves.items():
            if ref in numbers:
                (_, kind, hashed), number = numbers[ref]
                there = equals.get((current, kind, hashed), [ref])
                stands[ref] = there[min(number, len(there) - 1)]
        return [stands.get(ref, ref) for ref, _ in spans]

    def equals(self, books: Iterable[Book], hashes: Iterable[bytes]) -> dict[Text, list[SpanRef]]:
        """Return the spans of these books that have one of these texts, in order, by book, kind and text."""
        listed = sorted(books)
        if not listed:
            return {}
        found: dict[Text, list[SpanRef]] = {}
        rows = self.ask("deliver_equals", **book_columns(listed), hashes=sorted(hashes))
        for i, tx, start, end, kind, hashed in rows:
            book = listed[i - 1]
            found.setdefault((book, kind, bytes(hashed)), []).append(SpanRef(book.source_id, tx, start, end))
        return found

    def _key(self, ref: SpanRef, book: Book) -> str:
        conversation = self.sources[ref.source_id].conversation_id
        return f"conversation:{conversation}" if conversation else f"source:{book.source_id}@{book.first_tx}"

    def _move(self, ref: SpanRef) -> tuple[Book, Book] | None:
        """Return the span's own book and the one that was current, where they differ."""
        source = self.sources.get(ref.source_id)
        own = source.book(ref.version_tx, self.as_of) if source else None
        current = source.current_book(self.as_of) if source else None
        return (own, current) if own and current and own.first_tx != current.first_tx else None

    def _learn_sources(self, refs: Iterable[SpanRef]) -> None:
        self.meet(ref.source_id for ref in refs)

    def meet(self, source_ids: Iterable[str]) -> None:
        """Look sources up that were not looked up yet."""
        unknown = sorted(set(source_ids) - self.sources.keys())
        for source_id, klass, conversation, position, bases, *versions in (
            self.ask("deliver_sources", sources=unknown) if unknown else ()
        ):
            about = (source_id, klass, conversation, position, tuple(bases or ()), *versions)
            self.sources[source_id] = Shelved(*about)


def book_columns(books: Sequence[Book]) -> dict[str, list[Any]]:
    """Return books as the columns that statements take."""
    return by_name(("sources", "firsts", "lasts"), books)
