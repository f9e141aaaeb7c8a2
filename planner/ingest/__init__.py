"""Formats → canonical text → spans, nodes, edges. Pure: bytes in, a batch out."""

from planner.ingest.embed_text import SpanText, embed_text, span_texts
from planner.ingest.ids import derived_id, node_id, scope_id, source_node_id
from planner.ingest.parse import parse

__all__ = [
    "SpanText",
    "derived_id",
    "embed_text",
    "node_id",
    "parse",
    "scope_id",
    "source_node_id",
    "span_texts",
]
