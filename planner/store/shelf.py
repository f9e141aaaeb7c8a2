"""The shelf that delivery reads from: the documents around spans, as of the plan that selected them.

Everything is looked up by key, in a constant number of statements; of a text, only slices are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

from planner.ingest import node_id
from planner.store.books import Book, Place, Stretch, around, whole
from planner.store.connect import Connection, by_name, columns
from planner.store.places import Places, book_columns
from planner.store.queries import compose, query
from planner.store.read import slices
from planner.types import OPEN_TX, Document, Passage, SpanRef, Volume

MESSAGE = "message"
"""The kind of a turn's spans."""

BODY = "body"
"""The kind of what the ledger does not have."""

NOW = OPEN_TX - 1
"""Beyond every transaction: what became of a version is told as of the snapshot."""

Version = tuple[str, int]


class _Turn(NamedTuple):
    """What a node says of a turn."""

    at: datetime | None = None
    observed_at: datetime | None = None
    role: str | None = None


class _Row(NamedTuple):
    """A span of the ledger, in its book; `turn` is what a node of its own version says of it."""

    book: Book
    ref: SpanRef
    kind: str
    ordinal: int
    heading_path: tuple[str, ...]
    speaker: str | None
    text_hash: bytes
    turn: _Turn | None

    @property
    def version(self) -> Version:
        """The source version that it is of."""
        return self.ref[:2]


@dataclass(frozen=True, slots=True)
class _Layout:
    """A document before its passages are read: its books in order, their lengths, the spans asked about."""

    key: str
    conversation: bool
    books: tuple[Book, ...]
    lengths: tuple[int, ...]
    places: tuple[Place, ...]

    def stretches(self, neighbours: int | None) -> set[Stretch]:
        """Return what is to be read of it."""
        if neighbours is None:
            return set(whole(self.books))
        return around(self.books, self.lengths, self.places, neighbours)


class ScopeShelf:
    """The shelf of one scope, on a connection whose snapshot lasts for the whole delivery.

    `as_of` is the plan's transaction: books end there, and the turns of a conversation are those of then.
    What became of a version since, that it was superseded or erased, is told as of the snapshot.
    """

    def __init__(self, conn: Connection, scope_id: UUID, as_of: int) -> None:
        """Take a scoped connection."""
        self._places = Places(conn, scope_id, as_of)

    def standing(self, spans: Sequence[tuple[SpanRef, bytes]]) -> list[SpanRef]:
        """Return for each span, with its text's hash, the one that stands for it: see `Places.standing`."""
        standing = self._places.standing(spans)
        self._places.learn(standing)
        return standing

    def key(self, ref: SpanRef) -> str:
        """Return the key of the document that holds a span; one that the ledger lacks is its own document."""
        self._places.learn([ref])
        return self._places.key(ref) or f"span:{ref}"

    def documents(self, refs: Sequence[SpanRef], neighbours: int | None) -> Mapping[str, Document]:
        """Return the documents that hold these spans, with the passages near them, or with all."""
        self._places.learn(refs)
        held: dict[str, dict[SpanRef, None]] = {}
        alone: dict[str, SpanRef] = {}
        for ref in refs:
            if key := self._places.key(ref):
                held.setdefault(key, {})[ref] = None
            else:
                alone[self.key(ref)] = ref
        layouts = self._layouts({key: list(spans) for key, spans in held.items()})
        rows = self._rows(layouts, neighbours)
        versions = {row.version for found in rows.values() for row in found}
        volumes = self.volumes(sorted(versions.union(ref[:2] for ref in alone.values())))
        documents = {layout.key: _document(layout, rows, volumes) for layout in layouts}
        lone = {key: (volumes[ref[:2]], Passage(ref, 0, BODY)) for key, ref in alone.items()}
        return documents | {key: Document(key, False, (v,), (p,), 1) for key, (v, p) in lone.items()}

    def read(self, refs: Sequence[SpanRef]) -> list[bytes | None]:
        """Return the bytes of ranges of canonical text, None where a version is gone, erased or shorter."""
        return slices(self._places.conn, self._places.scope_id, refs)

    def volumes(self, versions: Sequence[Version]) -> dict[Version, Volume]:
        """Return what is said of source versions; one that is gone altogether counts as erased."""
        self._places.meet(source_id for source_id, _ in versions)
        sources, numbers = columns(versions, 2)
        statement = compose("deliver_volumes", stale=query("stale_derivation"))
        found = {key: Volume(*key, 0, trust="untrusted", erased=True) for key in versions}
        for source_id, tx, length, *said, made_from, stale in (
            self._places.ask(statement, sources=sources, versions=numbers, as_of=NOW) if versions else ()
        ):
            source = self._places.sources[source_id]
            since = (source.superseded_by(tx), tuple(made_from or ()), stale)
            about: Any = (source_id, tx, length, source.source_class, *said, *since)
            found[source_id, tx] = Volume(*about)
        return found

    def _layouts(self, held: Mapping[str, Sequence[SpanRef]]) -> list[_Layout]:
        books = {key: self._places.books(key) for key in held}
        every = [book for listed in books.values() for book in listed]
        found = self._places.ask("deliver_lengths", **book_columns(every)) if every else ()
        lengths = {every[i - 1]: length for i, length in found}
        layouts = []
        for key, refs in held.items():
            listed = tuple(book for book in books[key] if book in lengths)
            places = self._places.places(listed, refs)
            is_turn = self._places.sources[refs[0].source_id].conversation_id is not None
            layouts.append(_Layout(key, is_turn, listed, tuple(lengths[book] for book in listed), places))
        return layouts

    def _rows(self, layouts: Sequence[_Layout], neighbours: int | None) -> dict[Book, list[_Row]]:
        """Read the spans of what is wanted of each book, each once, in order."""
        wanted = list({s: None for layout in layouts for s in layout.stretches(neighbours)})
        names = ("versions", "starts", "ends", "back", "ahead")
        places = by_name(names, [stretch[1:] for stretch in wanted])
        params = {**book_columns([stretch.book for stretch in wanted]), **places}
        found: dict[SpanRef, _Row] = {}
        for i, tx, start, end, kind, ordinal, path, speaker, hashed, has_node, *turn in (
            self._places.ask("deliver_passages", **params) if wanted else ()
        ):
            book = wanted[i - 1].book
            ref = SpanRef(book.source_id, tx, start, end)
            own = _Turn(*turn) if has_node else None
            found[ref] = _Row(book, ref, kind, ordinal, tuple(path), speaker, bytes(hashed), own)
        rows: dict[Book, list[_Row]] = {}
        for row in self._with_turns([found[ref] for ref in sorted(found)]):
            rows.setdefault(row.book, []).append(row)
        return rows

    def _with_turns(self, rows: list[_Row]) -> list[_Row]:
        """Give turns without a node of their version the one that an older version with the same text kept.

        A node's id is made of its text and of how many equal ones come before it.
        """
        lacking = [row for row in rows if row.kind == MESSAGE and row.turn is None]
        if not lacking:
            return rows
        equals = self._places.equals({row.book for row in lacking}, {row.text_hash for row in lacking})
        nodes = {
            ref: node_id(ref.source_id, kind, hashed, number)
            for (_, kind, hashed), refs in equals.items()
            for number, ref in enumerate(refs)
        }
        wanted = sorted({nodes[row.ref] for row in lacking})
        turns = {node: _Turn(*said) for node, *said in self._places.ask("deliver_turns", nodes=wanted)}
        kept = {row.ref: turns.get(nodes[row.ref]) for row in lacking}
        return [row._replace(turn=kept.get(row.ref, row.turn)) for row in rows]


def _document(
    layout: _Layout, rows: Mapping[Book, Sequence[_Row]], volumes: Mapping[Version, Volume]
) -> Document:
    passages: list[Passage] = []
    versions: dict[Version, None] = {}
    for book, offset in zip(layout.books, accumulate(layout.lengths, initial=0), strict=False):
        for row in rows.get(book, ()):
            versions[row.version] = None
            passages.append(_passage(row, offset + row.ordinal, volumes[row.version]))
    is_conversation = layout.conversation or any(passage.kind == MESSAGE for passage in passages)
    read = tuple(volumes[version] for version in versions)
    return Document(layout.key, is_conversation, read, tuple(passages), sum(layout.lengths))


def _passage(row: _Row, position: int, volume: Volume) -> Passage:
    turn = row.turn or _Turn()
    speaker = row.speaker or turn.role
    if turn.role not in (None, speaker):
        speaker = f"{speaker} ({turn.role})"
    observed = turn.observed_at if turn.observed_at != volume.captured_at else None
    at = None if volume.erased else turn.at or observed
    return Passage(row.ref, position, row.kind, speaker, at, row.heading_path, row.text_hash)
