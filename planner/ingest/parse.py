"""From the bytes of an input to what the store writes: the one door of this package."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from planner.ingest.canonical import canonical_text
from planner.ingest.facts import instant, json_attributes
from planner.ingest.formats import checked, parse_source
from planner.ingest.html import as_utf8
from planner.ingest.import_batch import parse_import
from planner.ingest.media import AS_BYTES, HTML, IMPORT, media_type_of, media_type_of_bytes
from planner.types import Batch, SourceClass, SourceDraft, Trust

NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})


def parse(
    raw: bytes,
    *,
    source_id: str,
    media_type: str | None = None,
    title: str | None = None,
    uri: str | None = None,
    trust: Trust = "external",
    attributes: Mapping[str, Any] = NO_ATTRIBUTES,
    source_class: SourceClass = "truth",
    observed_at: datetime | None = None,
    conversation_id: str | None = None,
    position: int | None = None,
    max_span_chars: int = 900,
) -> Batch:
    """Parse one input: one source, or all that an open import file or an export of conversations holds.

    A media type of None is guessed from the id's extension and the content. What is said here wins over
    what a source says of itself; in an import it is the default for records that leave it out. Raises an
    IngestError that names what is wrong and where.
    """
    known = media_type or media_type_of_bytes(source_id, raw)
    text = raw if known in AS_BYTES else canonical_text(as_utf8(raw) if known == HTML else raw)
    draft = checked(
        SourceDraft(
            source_id=source_id,
            media_type=known or media_type_of(source_id, text.decode()),
            text=text,
            spans=(),
            parser_version="",
            source_class=source_class,
            title=title,
            uri=uri,
            trust=trust,
            attributes=json_attributes(attributes),
            observed_at=None if observed_at is None else instant(observed_at),
            conversation_id=conversation_id,
            position=position,
        )
    )
    if draft.media_type == IMPORT:
        return parse_import(draft, max_span_chars)
    return parse_source(draft, max_span_chars)
