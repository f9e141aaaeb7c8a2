"""Hits and a shelf made of any retriever's ranked results: delivery without a plan, and without a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol, get_args

from planner.errors import RequestError
from planner.hashing import text_hash
from planner.ingest.cut import pieces
from planner.types import TRUST_ORDER, Document, Hit, Passage, SourceClass, SpanRef, Trust, Volume

_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("text", "title", "uri", "actor", "speaker"), str),
    **dict.fromkeys(("at", "captured_at"), datetime),
}

MAX_CHARS: Final = 900
"""Characters of a passage between results, where a record is plain text."""


class Part(NamedTuple):
    """A passage of a source, in bytes of its UTF-8 text; of a conversation, a message."""

    start: int
    end: int
    speaker: str | None = None
    at: datetime | None = None


class Record(Protocol):
    """A source that can be read around its results."""

    @property
    def byte_length(self) -> int:
        """The length of its UTF-8 text."""
        ...

    def parts(self) -> Sequence[Part]:
        """Return its passages in order, results among them."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """Return a range of its text."""
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """A ranked result: its source, the byte at which its text begins there, and what is known of the source.

    `record` is the source's whole text, or what reads it; then `end` may stand for `text`. Without a record
    nothing surrounds the result: its window and its record are the chunk. What results of one source say of
    it is taken from the best. `score` is the retriever's own; the order of the results is their rank.
    """

    source: str
    text: str | None = None
    start: int = 0
    end: int | None = None
    score: float | None = None
    record: str | Record | None = None
    title: str | None = None
    uri: str | None = None
    source_class: SourceClass = "truth"
    trust: Trust = "external"
    actor: str | None = None
    captured_at: datetime | None = None
    speaker: str | None = None
    at: datetime | None = None
    heading_path: Sequence[str] = ()


class ResultShelf:
    """The sources of ranked results, as far as their caller brought them; each is a document of its own."""

    def __init__(self, documents: Mapping[str, Document], records: Mapping[str, Record]) -> None:
        self._documents = documents
        self._records = records

    def documents(self, refs: Sequence[SpanRef], neighbours: int | None) -> Mapping[str, Document]:
        """Return the documents of these spans with all their passages, which are at hand."""
        return {self.key(ref): self._documents[self.key(ref)] for ref in refs}

    def key(self, ref: SpanRef) -> str:
        """Return the source's id."""
        return ref.source_id

    def read(self, refs: Sequence[SpanRef]) -> list[bytes | None]:
        """Return the bytes of these ranges."""
        return [self._records[ref.source_id].read(ref.start, ref.end) for ref in refs]


def shelve(results: Iterable[Result | Mapping[str, Any]]) -> tuple[list[Hit], ResultShelf]:
    """Return ranked results, best first, as hits and the shelf of their sources.

    Raises RequestError naming the result and what is wrong: an unknown field, no text, a range that is not
    that of the text, a text that its record or another result contradicts.
    """
    by_source: dict[str, dict[int, Result]] = {}
    for rank, given in enumerate(results, start=1):
        result = _result(given, rank)
        by_source.setdefault(result.source, {})[rank] = result
    hits: list[Hit] = []
    documents: dict[str, Document] = {}
    records: dict[str, Record] = {}
    for source, held in by_source.items():
        brought = next((result.record for result in held.values() if result.record is not None), None)
        refs = {rank: SpanRef(source, 0, result.start, _end(result, rank)) for rank, result in held.items()}
        record = records[source] = _record(brought, held, refs)
        documents[source] = _document(source, held, refs, record, whole=brought is not None)
        hits += [Hit(rank, ref, source, _checked_hash(record, ref, held[rank])) for rank, ref in refs.items()]
    return sorted(hits, key=lambda hit: hit.rank), ResultShelf(documents, records)


class _Text:
    """A record that is all there: results, and what is between them in passages."""

    def __init__(self, text: bytes, refs: Iterable[SpanRef]) -> None:
        self.byte_length = len(text)
        self._text = text
        self._refs = sorted(set(refs))

    def parts(self) -> list[Part]:
        parts, seen = [], 0
        for ref in [*self._refs, None]:
            start, end = (ref.start, ref.end) if ref else (self.byte_length, self.byte_length)
            between = self._text[seen:start].decode(errors="replace")
            for piece in pieces(between, "paragraph", MAX_CHARS):
                size = len(piece.encode())
                if not piece.isspace():
                    parts.append(Part(seen, seen + size))
                seen += size
            parts += [Part(start, end)] if ref else []
            seen = max(seen, end)
        return parts

    def read(self, start: int, end: int) -> bytes:
        return self._text[start:end]


class _Fragments:
    """What is known of a source without a record: the texts of its results, which may overlap."""

    def __init__(self, texts: Iterable[tuple[SpanRef, bytes]]) -> None:
        self._held: list[tuple[int, bytes]] = []
        for ref, text in sorted(texts):
            start, held = self._held[-1] if self._held else (0, b"")
            if self._held and ref.start <= start + len(held):
                self._held[-1] = (start, held + text[start + len(held) - ref.start :])
            else:
                self._held.append((ref.start, text))
        self.byte_length = max(start + len(text) for start, text in self._held)

    def parts(self) -> list[Part]:
        return []

    def read(self, start: int, end: int) -> bytes:
        known = next((first, text) for first, text in reversed(self._held) if first <= start)
        return known[1][start - known[0] : end - known[0]]


def _result(given: Result | Mapping[str, Any], rank: int) -> Result:
    try:
        result = given if isinstance(given, Result) else Result(**given)
    except TypeError as error:
        raise _bad(rank, str(error).replace("Result.__init__() ", "")) from None
    if not result.source or not isinstance(result.source, str):
        raise _bad(rank, f"source = {result.source!r} is not a name")
    if not isinstance(result.start, int) or result.start < 0:
        raise _bad(rank, f"start = {result.start!r} is not a byte offset, 0 or more")
    if result.trust not in TRUST_ORDER:  # it is said bare in the envelope
        raise _bad(rank, f"trust = {result.trust!r} is not one of {', '.join(TRUST_ORDER)}")
    if result.source_class not in get_args(SourceClass):
        raise _bad(rank, f"source_class = {result.source_class!r} is neither truth nor cache")
    for name, kind in _TYPES.items():
        value = getattr(result, name)
        if value is not None and not isinstance(value, kind):
            raise _bad(rank, f"{name} = {value!r} is no {kind.__name__}")
    if not result.text and (result.record is None or result.end is None):
        raise _bad(rank, "there is no text, nor a record with the range of one")
    return result


def _end(result: Result, rank: int) -> int:
    """Return where a result ends, by its text or else its word."""
    end = result.end if result.text is None else result.start + len(_encoded(result.text, rank))
    if end is None or end <= result.start or result.end not in (None, end):
        raise _bad(rank, f"the range {result.start}-{result.end} is empty or not that of its text")
    return end


def _record(brought: str | Record | None, held: Mapping[int, Result], refs: Mapping[int, SpanRef]) -> Record:
    if brought is None:
        return _Fragments((refs[rank], _encoded(held[rank].text or "", rank)) for rank in held)
    return _Text(_encoded(brought, min(held)), refs.values()) if isinstance(brought, str) else brought


def _document(
    source: str, held: Mapping[int, Result], refs: Mapping[int, SpanRef], record: Record, *, whole: bool
) -> Document:
    """Return a source's document: its passages are its record's, with what results say of theirs."""
    said = {refs[rank]: held[rank] for rank in sorted(held, reverse=True)}
    parts = {SpanRef(source, 0, part.start, part.end): part for part in record.parts()}
    passages = []
    for position, ref in enumerate(sorted({*parts, *said})):
        part, result = parts.get(ref), said.get(ref)
        speaker = (result and result.speaker) or (part and part.speaker) or None
        at = (result and result.at) or (part and part.at) or None
        heading = tuple(result.heading_path) if result else ()
        kind = "message" if speaker else "paragraph"
        passages.append(Passage(ref, position, kind, speaker, _utc(at), heading))
    best = held[min(held)]
    volume = Volume(
        source,
        0,
        record.byte_length,
        source_class=best.source_class,
        trust=best.trust,
        actor=best.actor,
        title=best.title,
        uri=best.uri,
        captured_at=_utc(best.captured_at),
    )
    is_conversation = not whole or any(passage.speaker for passage in passages)
    return Document(source, is_conversation, (volume,), tuple(passages), len(passages), whole)


def _checked_hash(record: Record, ref: SpanRef, result: Result) -> bytes:
    """Return the hash of a result's text; the record must hold that text."""
    found = record.read(ref.start, ref.end)
    if len(found) != ref.end - ref.start or (result.text is not None and result.text.encode() != found):
        raise RequestError(f"{ref}: the text is not what its source has there, or what another result says")
    return text_hash(found)


def _encoded(text: str, rank: int) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _bad(rank, "its text holds a lone surrogate, which is no text") from None


def _utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def _bad(rank: int, complaint: str) -> RequestError:
    return RequestError(f"result {rank}: {complaint}", result=rank)
