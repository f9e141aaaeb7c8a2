"""Looking around the store: which scopes there are, which sources they hold, what one source is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from planner.engine import Engine
from planner.errors import RequestError, UnknownSource
from planner.ingest import scope_id as id_of_scope
from planner.recall.frame import read_state
from planner.store import read
from planner.store.connect import run
from planner.store.retry import retried
from planner.store.write import whole_texts
from planner.types import JsonObject, SourceClass, Span, SpanRef, Trust

MAX_PAGE = 10_000


@dataclass(frozen=True, slots=True)
class Scope:
    """A tenant: its newest transaction, its size, and the embedding model that it uses now, if any."""

    name: str
    scope_id: UUID
    last_tx: int
    live_nodes: int
    created_at: datetime
    sources: int
    model: str | None
    model_revision: str | None
    dimensions: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the scope as JSON data."""
        return {**asdict(self), "scope_id": str(self.scope_id), "created_at": self.created_at.isoformat()}


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """A source with its newest version; `byte_length` is of its whole text, with what was appended."""

    source_id: str
    media_type: str
    source_class: SourceClass
    version_tx: int
    title: str | None
    trust: Trust
    byte_length: int
    observed_at: datetime | None
    erased: bool
    withdrawn: bool
    spans: int

    def to_dict(self) -> dict[str, Any]:
        """Return the source as JSON data."""
        return _json(asdict(self))


@dataclass(frozen=True, slots=True)
class SourcePage:
    """Some sources of a scope in order of id; `next_after` is where the next page begins, None at the end."""

    scope: str
    sources: tuple[SourceSummary, ...]
    next_after: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the page as JSON data."""
        sources = [source.to_dict() for source in self.sources]
        return {"scope": self.scope, "sources": sources, "next_after": self.next_after}


@dataclass(frozen=True, slots=True)
class HeldSpan:
    """A span of a source as the ledger has it; `ref` names the version that it is in."""

    ref: SpanRef
    span: Span


@dataclass(frozen=True, slots=True)
class SourceDetail:
    """All that is kept of a source and its newest version but the text; `ingested_at` is that version's.

    Length, hash and spans are those of the whole text: of all versions that were appended, with their base.
    """

    scope: str
    source_id: str
    media_type: str
    source_class: SourceClass
    conversation_id: str | None
    position: int | None
    version_tx: int
    title: str | None
    uri: str | None
    trust: Trust
    actor: str
    attributes: JsonObject
    observed_at: datetime | None
    byte_length: int
    text_hash: bytes
    parser_version: str
    ingested_at: datetime
    erased: bool
    withdrawn: bool
    versions: int
    spans: tuple[HeldSpan, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the source as JSON data."""
        spans = [{"ref": str(held.ref), **_json(asdict(held.span))} for held in self.spans]
        return {**_json(asdict(self)), "spans": spans}


@retried
def scopes(engine: Engine) -> tuple[Scope, ...]:
    """Return every scope by name, which only the owner of the schema may ask for."""
    with engine.store.maintenance() as conn:
        return tuple(Scope(*row) for row in run(conn, "list_scopes"))


@retried
def sources(engine: Engine, scope: str, *, after: str | None, limit: int) -> SourcePage:
    """Return a page of a scope's sources. Raises UnknownScope, RequestError for a bad limit or `after`."""
    if not 1 <= limit <= MAX_PAGE:
        raise RequestError(f"limit = {limit}: a page has 1 to {MAX_PAGE} sources", field="limit")
    scope_id = id_of_scope(scope)
    params = {"scope_id": scope_id, "after": storable(after or "", "after"), "limit": limit + 1}
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        found = [SourceSummary(*row) for row in run(conn, "list_sources", params)]
    page = tuple(found[:limit])
    return SourcePage(scope, page, page[-1].source_id if len(found) > limit else None)


@retried
def source(engine: Engine, scope: str, source_id: str) -> SourceDetail:
    """Return a source, its newest version and the spans of its text. Raises UnknownScope, UnknownSource."""
    scope_id = id_of_scope(scope)
    params: dict[str, Any] = {"scope_id": scope_id, "source_id": storable(source_id, "source")}
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        row = run(conn, "show_source", params).fetchone()
        if row is None:
            raise UnknownSource(f"no source {source_id!r} in scope {scope!r}", source=source_id)
        *about, is_extended = row
        ledger = run(conn, "source_spans", params).fetchall()
        whole = whole_texts(conn, scope_id, [source_id]) if is_extended and not row[16] else {}
    columns: tuple[Any, ...] = (scope, *about, tuple(held_span(source_id, entry) for entry in ledger))
    found = SourceDetail(*columns)
    return replace(found, text_hash=whole[source_id][0]) if whole else found


@retried
def span_row(engine: Engine, scope: str, ref: SpanRef) -> Span:
    """Return a span's row of the ledger. Raises UnknownSpan."""
    with engine.store.scoped(id_of_scope(scope), "reader") as conn:
        return read.span_row(conn, id_of_scope(scope), ref)


@retried
def slice_text(engine: Engine, scope: str, ref: SpanRef) -> str:
    """Return a span's text, checked against the span ledger. Raises UnknownSpan, IntegrityError."""
    with engine.store.scoped(id_of_scope(scope), "reader") as conn:
        return read.slice_text(conn, id_of_scope(scope), ref)


def storable(text: str, field: str) -> str:
    """Return `text`. Raises RequestError where it is nothing that the database can hold."""
    if "\0" in text:
        raise RequestError(f"{field}: NUL characters are not allowed", field=field)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RequestError(f"{field}: lone surrogates are not allowed", field=field) from None
    return text


def check_page(offset: int, limit: int, most: int) -> None:
    """Raise RequestError where a page is none: it has 1 to `most` rows, from one that is counted from 0."""
    if not 1 <= limit <= most:
        raise RequestError(f"limit = {limit}: a page has 1 to {most} rows", field="limit")
    if not 0 <= offset < 2**31:
        raise RequestError(f"offset = {offset}: rows are counted from 0", field="offset")


def held_span(source_id: str, row: Sequence[Any]) -> HeldSpan:
    """Read a row of `source_spans` or `text_spans`."""
    version_tx, start, end, kind, ordinal, ascii_bytes, non_ascii, hashed, path, *said = row
    span = Span(start, end, kind, ordinal, ascii_bytes, non_ascii, hashed, tuple(path), *said)
    return HeldSpan(SpanRef(source_id, version_tx, start, end), span)


def _json(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON data; `class` is called that outside Python."""
    return {"class" if key == "source_class" else key: _plain(value) for key, value in fields.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value
