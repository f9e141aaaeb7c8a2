"""The parsers of single sources, by media type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.errors import MalformedInput, UnsupportedInput
from planner.ingest import code, conversation, delimited, exports, html, mail, markdown, pdf, text
from planner.ingest.facts import storable
from planner.ingest.ids import MAX_ID_BYTES
from planner.ingest.languages import FAMILIES
from planner.ingest.media import (
    CHATGPT,
    CLAUDE,
    CONVERSATION,
    CSV,
    HTML,
    MAIL,
    MARKDOWN,
    MBOX,
    PDF,
    PLAIN,
    TSV,
)
from planner.types import Batch, SourceDraft

Parser = Callable[[SourceDraft, int], Batch]

PARSERS: Mapping[str, tuple[Parser, str]] = MappingProxyType(
    {
        MARKDOWN: (markdown.parse_markdown, markdown.PARSER_VERSION),
        PLAIN: (text.parse_text, text.PARSER_VERSION),
        CONVERSATION: (conversation.parse_conversation, conversation.PARSER_VERSION),
        **dict.fromkeys((CSV, TSV), (delimited.parse_delimited, delimited.PARSER_VERSION)),
        HTML: (html.parse_html, html.PARSER_VERSION),
        PDF: (pdf.parse_pdf, pdf.PARSER_VERSION),
        **dict.fromkeys((MAIL, MBOX), (mail.parse_mail, mail.PARSER_VERSION)),
        **dict.fromkeys((CHATGPT, CLAUDE), (exports.parse_export, exports.PARSER_VERSION)),
        **dict.fromkeys(FAMILIES, (code.parse_code, code.PARSER_VERSION)),
    }
)


def parse_source(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Parse one source by its media type.

    The parser version names the parser and the size of its pieces, so that a change of either makes a new
    version of the source. Raises UnsupportedInput for an unknown media type.
    """
    if draft.media_type not in PARSERS:
        raise UnsupportedInput(f"no parser reads {draft.media_type!r} as a source; use {', '.join(PARSERS)}")
    parser, version = PARSERS[draft.media_type]
    return parser(replace(draft, parser_version=f"{version} max_span_chars={max_span_chars}"), max_span_chars)


def checked(draft: SourceDraft) -> SourceDraft:
    """Return the draft. Raises MalformedInput for an id, title or uri that the store cannot hold."""
    for name in ("source_id", "title", "uri", "conversation_id"):
        value = getattr(draft, name)
        if value is not None:
            storable(value, name)
    for name in ("source_id", "conversation_id"):
        value = getattr(draft, name)
        if value is not None and not 1 <= len(value.encode()) <= MAX_ID_BYTES:
            raise MalformedInput(f"{name} must be 1 to {MAX_ID_BYTES} bytes long, not {len(value.encode())}")
    if (draft.conversation_id is None) != (draft.position is None):
        raise MalformedInput("a turn has both a conversation_id and a position in it, or neither")
    return draft
