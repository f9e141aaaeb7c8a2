"""The text of a source as people read it: a page at a time, with its spans and what plans made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from planner.engine import Engine
from planner.errors import RequestError, UnknownSource
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.browse import HeldSpan, check_page, held_span, storable
from planner.recall.frame import read_state
from planner.store.connect import Connection, run
from planner.store.read import slices
from planner.store.retry import retried
from planner.store.shelf import ScopeShelf
from planner.types import PlanRef, SourceClass, SpanRef, Trust, Volume

MAX_SPANS = 1_000
"""The most spans of one page."""

MAX_BYTES = 256 * 1024
"""The most bytes of one page, but for its first span."""

RECENT = 100
"""How many plans are asked what they made of a source, the newest: each may have thousands of candidates."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one version and their text, with a character at either end cut off replaced."""

    ref: SpanRef
    text: str


@dataclass(frozen=True, slots=True)
class SourceText:
    """A page of a source's text as of a version: of that, and of all that it was appended to.

    `pieces` follow one another without gaps, one a version; empty where it is erased. `spans` are those of
    the page, `offset` the place of the first, counted from 0, `total` all there are; the next page begins at
    `next_offset`. Of a piece that is too long for a page the rest is left out, `left_out` bytes.
    `withdrawn_tx` is of the newest version, `erased_tx` of this one.
    """

    scope: str
    source_id: str
    media_type: str
    source_class: SourceClass
    conversation_id: str | None
    version_tx: int
    base_tx: int
    newest_tx: int
    title: str | None
    uri: str | None
    trust: Trust
    actor: str
    observed_at: datetime | None
    recorded_at: datetime
    erased_tx: int | None
    withdrawn_tx: int | None
    byte_length: int
    total: int
    offset: int = 0
    next_offset: int | None = None
    pieces: tuple[Piece, ...] = ()
    spans: tuple[HeldSpan, ...] = ()
    left_out: int = 0

    @property
    def superseded_by(self) -> int | None:
        """The newest version where this is not it."""
        return self.newest_tx if self.newest_tx != self.version_tx else None

    def to_dict(self) -> dict[str, Any]:
        """Return the page as JSON data."""
        names = ("scope", "source_id", "media_type", "conversation_id", "version_tx", "base_tx", "newest_tx")
        more = ("title", "uri", "trust", "actor", "erased_tx", "withdrawn_tx", "byte_length", "total")
        return {
            **{name: getattr(self, name) for name in (*names, *more, "offset", "next_offset", "left_out")},
            "class": self.source_class,
            "observed_at": self.observed_at.isoformat() if self.observed_at else None,
            "recorded_at": self.recorded_at.isoformat(),
            "pieces": [{"ref": str(piece.ref), "text": piece.text} for piece in self.pieces],
            "spans": [{"ref": str(held.ref), "kind": held.span.kind} for held in self.spans],
        }


@dataclass(frozen=True, slots=True)
class TextUse:
    """In how many plans a text was selected, in how many it was found and not, and the newest of either."""

    selected: int
    rejected: int
    last_selected: PlanRef | None
    last_rejected: PlanRef | None


@dataclass(frozen=True, slots=True)
class SourceUse:
    """What the newest `plans` of a scope made of a source, by the BLAKE3-256 of each text that they found."""

    plans: int
    texts: Mapping[bytes, TextUse] = field(default_factory=dict)


@retried
def source_text(
    engine: Engine, scope: str, source_id: str, version_tx: int | None, *, offset: int, limit: int
) -> SourceText:
    """Return a page of a source's text as of a version, the newest where none is named.

    Raises UnknownScope, UnknownSource, RequestError.
    """
    check_page(offset, limit, MAX_SPANS)
    if version_tx is not None and not 0 < version_tx < 2**63:
        raise RequestError(f"version = {version_tx}: a version is a transaction, from 1", field="version")
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        found = replace(read_version(conn, scope, scope_id, source_id, version_tx), offset=offset)
        if found.erased_tx is not None:
            return found
        chain = {"scope_id": scope_id, "source_id": source_id, "base_tx": found.base_tx}
        chain = {**chain, "version_tx": found.version_tx}
        rows = run(conn, "text_spans", {**chain, "offset": offset, "limit": limit + 1}).fetchall()
        return _page(conn, scope_id, found, [held_span(source_id, row) for row in rows], limit)


@retried
def source_use(engine: Engine, scope: str, source_id: str) -> SourceUse:
    """Return what the newest plans of a scope made of a source. Raises UnknownScope."""
    scope_id = id_of_scope(scope)
    params = {"scope_id": scope_id, "source_id": storable(source_id, "source"), "plans": RECENT}
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        (_, plans, *_), *rows = run(conn, "text_usage", params).fetchall()

    def ref(plan_id: UUID | None) -> PlanRef | None:
        return None if plan_id is None else PlanRef(scope, str(plan_id))

    texts = {
        bytes(hashed): TextUse(selected, rejected, ref(chosen), ref(left))
        for hashed, selected, rejected, chosen, left in rows
    }
    return SourceUse(plans, texts)


@retried
def texts(engine: Engine, scope: str, refs: Sequence[SpanRef]) -> tuple[str | None, ...]:
    """Return the texts of spans as they are now, None of what is gone. Raises UnknownScope."""
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        found = slices(conn, scope_id, refs)
    return tuple(None if data is None else data.decode("utf-8", "replace") for data in found)


@retried
def volumes(
    engine: Engine, scope: str, versions: Iterable[tuple[str, int]]
) -> Mapping[tuple[str, int], Volume]:
    """Return what is known today of these source versions. Raises UnknownScope."""
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        state = read_state(conn, scope, scope_id, None)
        return ScopeShelf(conn, scope_id, state.last_tx).volumes(sorted(set(versions)))


def read_version(
    conn: Connection, scope: str, scope_id: UUID, source_id: str, version_tx: int | None
) -> SourceText:
    """Read what is known of a version, the newest where none is named, and of what it was appended to.

    Raises UnknownScope, UnknownSource, RequestError.
    """
    params = {"scope_id": scope_id, "source_id": storable(source_id, "source"), "version_tx": version_tx}
    read_state(conn, scope, scope_id, None)
    row = run(conn, "text_version", params).fetchone()
    if row is None:
        named = f"{source_id!r}" + ("" if version_tx is None else f", version {version_tx},")
        raise UnknownSource(f"no source {named} in scope {scope!r}", source=source_id)
    return SourceText(scope, source_id, *row)


def _page(
    conn: Connection, scope_id: UUID, found: SourceText, held: Sequence[HeldSpan], limit: int
) -> SourceText:
    """Return the page of the first spans of `held`, whose text runs to the next span, or to the end."""
    spans = list(held[:limit])
    while len(spans) > 1 and sum(one.ref.end - one.ref.start for one in spans) > MAX_BYTES:
        spans = spans[: len(spans) // 2]
    beyond = held[len(spans)] if len(held) > len(spans) else None
    refs = _ranges(conn, scope_id, found, spans, beyond)
    shown = [ref._replace(end=min(ref.end, ref.start + MAX_BYTES)) for ref in refs]
    texts = [data.decode("utf-8", "replace") if data else "" for data in slices(conn, scope_id, shown)]
    return replace(
        found,
        pieces=tuple(Piece(ref, text) for ref, text in zip(shown, texts, strict=True) if text),
        spans=tuple(spans),
        next_offset=None if beyond is None else found.offset + len(spans),
        left_out=sum(ref.end - cut.end for ref, cut in zip(refs, shown, strict=True)),
    )


def _ranges(
    conn: Connection, scope_id: UUID, found: SourceText, spans: Sequence[HeldSpan], beyond: HeldSpan | None
) -> list[SpanRef]:
    """Return the bytes of a page by version: from its first span, or the beginning, to what is beyond."""
    first = spans[0].ref if spans and found.offset else None
    last = beyond.ref if beyond else None
    params = {
        "scope_id": scope_id,
        "source_id": found.source_id,
        "first_tx": first.version_tx if first else found.base_tx,
        "last_tx": last.version_tx if last else found.version_tx,
    }
    ranges = []
    for version_tx, byte_length in run(conn, "text_lengths", params):
        start = first.start if first and first.version_tx == version_tx else 0
        end = last.start if last and last.version_tx == version_tx else byte_length
        if start < end:
            ranges.append(SpanRef(found.source_id, version_tx, start, end))
    return ranges
