"""Derived text, read top to bottom: what it is made from, how far that is trusted, then it is ingested.

A summary is a source of class `cache`: it is recalled like any other, at a discount, and is no evidence that
a claim is held against. Its versions name the spans that they were made from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from planner.engine import Engine
from planner.errors import RequestError, UnknownScope, UnknownSpan
from planner.ingest import derived_id, parse
from planner.ingest.media import MARKDOWN
from planner.pipeline.browse import storable
from planner.pipeline.ingest import Compared, Ingested, check_kinds, write
from planner.store.changes import changes
from planner.store.connect import Connection, run
from planner.store.read import keys
from planner.store.write import read_current
from planner.types import OPEN_TX, TRUST_ORDER, SpanRef, Trust

KIND = re.compile(r"[a-z][a-z0-9_-]{0,62}")


def derive(
    engine: Engine,
    scope: str,
    text: str,
    made_from: Iterable[SpanRef],
    *,
    kind: str,
    source_id: str | None = None,
    title: str | None = None,
    trust: Trust | None = None,
    attributes: Mapping[str, Any],
) -> Ingested:
    """Write a text that was made from spans as a cache, in one ledger transaction; nothing where it is there.

    The text is read as Markdown. Without a `source_id` the kind and the spans name it. A span of an old
    version whose text is in the newest one too counts as that of the newest. Raises RequestError,
    UnknownScope, UnknownSpan, IngestError, EmbedderError, StoreError, and has written nothing then.
    """
    refs = _checked(kind, trust, made_from)
    name = derived_id(kind, refs) if source_id is None else source_id
    parsed = parse(
        text.encode("utf-8", "surrogatepass"),
        source_id=name,
        media_type=MARKDOWN,
        title=title,
        attributes={**attributes, "kind": kind},
        source_class="cache",
        max_span_chars=engine.settings.max_span_chars,
    )
    check_kinds(engine, parsed)

    def compare(conn: Connection, scope_id: UUID, last_tx: int) -> Compared:
        if not last_tx:
            raise UnknownScope(f"no scope {scope!r}", scope=scope)
        standing, least = _standing(conn, scope, scope_id, name, refs)
        if trust is not None and TRUST_ORDER.index(trust) > TRUST_ORDER.index(least):
            raise RequestError(
                f"trust = {trust!r}: what it is made from is trusted no further than {least!r}", field="trust"
            )
        made = replace(parsed.sources[0], trust=trust or least, made_from=standing)
        batch = replace(parsed, sources=(made,))
        current = read_current(conn, scope_id, batch, last_tx=last_tx)
        return Compared(batch, current, changes(batch, current))

    return write(engine, scope, compare, "derive")


def _checked(kind: str, trust: Trust | None, made_from: Iterable[SpanRef]) -> tuple[SpanRef, ...]:
    """Return the spans in their order, each once. Raises RequestError."""
    refs = tuple(sorted(set(made_from)))
    if not refs:
        raise RequestError("name the spans that it is made from, each source@tx:start-end", field="from")
    if KIND.fullmatch(kind) is None:
        raise RequestError(f"kind = {kind!r}: write a word that matches {KIND.pattern}", field="kind")
    if trust is not None and trust not in TRUST_ORDER:
        raise RequestError(f"trust = {trust!r} is not one of {', '.join(TRUST_ORDER)}", field="trust")
    for ref in refs:
        storable(ref.source_id, "from")
        if max(ref.version_tx, ref.start, ref.end) > OPEN_TX:
            raise UnknownSpan(f"the span ledger has no {ref}", ref=str(ref))
    return refs


def _standing(
    conn: Connection, scope: str, scope_id: UUID, source_id: str, refs: tuple[SpanRef, ...]
) -> tuple[tuple[SpanRef, ...], Trust]:
    """Return the spans that stand for these in the newest versions, and the least trust of their sources.

    Raises UnknownSpan, naming all that nothing can be made from.
    """
    params = {"scope_id": scope_id, "source_id": source_id, **keys(refs)}
    rows = run(conn, "derivable", params).fetchall()
    wrong = {
        str(ref): "is erased" if erased else "is not in the span ledger"
        for ref, (present, erased, *_) in zip(refs, rows, strict=True)
        if erased or not present
    }
    if wrong:
        said = "; ".join(f"{ref} {what}" for ref, what in wrong.items())
        raise UnknownSpan(f"nothing can be made from this in scope {scope!r}: {said}", refs=list(wrong))
    standing = {SpanRef(ref.source_id, *row[2:5]) for ref, row in zip(refs, rows, strict=True)}
    return tuple(sorted(standing)), min((row[5] for row in rows), key=TRUST_ORDER.index)
