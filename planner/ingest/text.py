"""Plain text: paragraphs are set apart by blank lines."""

from __future__ import annotations

from dataclasses import replace

from planner.ingest.blocks import Block, assemble
from planner.ingest.ids import stem
from planner.ingest.lines import Lines
from planner.types import Batch, SourceDraft

PARSER_VERSION = "text/1"


def parse_text(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Return the batch of a plain text source."""
    lines = Lines(draft.text.decode())
    blocks = [Block(*lines.range(first, after), "paragraph") for first, after in lines.groups(0, len(lines))]
    return assemble(replace(draft, title=draft.title or stem(draft.source_id)), blocks, max_span_chars)
