"""Reading: slices of canonical text, the span ledger, sources and scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from planner.errors import IntegrityError, UnknownSpan
from planner.hashing import text_hash
from planner.store.connect import Connection, by_name, run
from planner.types import NO_TEXT_HASH, Span, SpanRef


def slices(conn: Connection, scope_id: UUID, refs: Sequence[SpanRef]) -> list[bytes | None]:
    """Return the bytes of each span, None where its version is missing, erased or shorter than the span."""
    if not refs:
        return []
    return [row[1] for row in run(conn, "slices", {"scope_id": scope_id, **keys(refs)}).fetchall()]


def checked_text(ref: SpanRef, data: bytes | None, expected: bytes) -> str | None:
    """Return a slice as text, None where it is missing or cuts through a code point.

    Raises IntegrityError where its bytes do not have the hash that the ledger holds (`expected`).
    """
    if data is None:
        return None
    if expected != NO_TEXT_HASH and text_hash(data) != expected:
        raise IntegrityError(f"the text of {ref} does not match its hash in the span ledger", ref=str(ref))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def span_row(conn: Connection, scope_id: UUID, ref: SpanRef) -> Span:
    """Return a span's row of the ledger. Raises UnknownSpan."""
    row = run(conn, "span_row", {"scope_id": scope_id, **_key(ref)}).fetchone()
    if row is None:
        raise UnknownSpan(f"the span ledger has no {ref}", ref=str(ref))
    kind, ordinal, ascii_bytes, non_ascii, hashed, path, *said = row
    return Span(ref.start, ref.end, kind, ordinal, ascii_bytes, non_ascii, hashed, tuple(path), *said)


def slice_text(conn: Connection, scope_id: UUID, ref: SpanRef) -> str:
    """Return the text of a span, checked against the ledger's hash. Raises UnknownSpan, IntegrityError."""
    span = span_row(conn, scope_id, ref)
    text = checked_text(ref, slices(conn, scope_id, [ref])[0], span.text_hash)
    if text is None:
        raise UnknownSpan(f"the text of {ref} cannot be cut out of its source: it is erased", ref=str(ref))
    return text


def cached_counts(
    conn: Connection, scope_id: UUID, counter: str, hashes: Sequence[bytes]
) -> Mapping[bytes, int]:
    """Return the token counts that an exact counter has cached, by text hash."""
    params = {"scope_id": scope_id, "counter": counter, "hashes": list(hashes)}
    return dict(run(conn, "counted", params).fetchall())


def keys(refs: Sequence[SpanRef]) -> dict[str, list[Any]]:
    """Return the parameters by which a statement is asked about many spans."""
    return by_name(("sources", "versions", "starts", "ends"), refs)


def _key(ref: SpanRef) -> dict[str, Any]:
    return {"source_id": ref.source_id, "version_tx": ref.version_tx, "start": ref.start, "end": ref.end}
