"""What of a node gets embedded, and indexed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planner.types import Batch, NodeDraft

MAX_EMBED_CHARS = 2_000

SpanKey = tuple[str, int, int]


class SpanText(NamedTuple):
    """A span's kind and text."""

    kind: str
    text: str


def span_texts(batch: Batch) -> dict[SpanKey, SpanText]:
    """Return the kind and text of every span of a batch, by `(source_id, start, end)`."""
    return {
        (source.source_id, span.start, span.end): SpanText(
            span.kind, source.text[span.start : span.end].decode()
        )
        for source in batch.sources
        for span in source.spans
    }


def embed_text(node: NodeDraft, texts: Mapping[SpanKey, SpanText], kind_priors: Mapping[str, float]) -> str:
    """Return the text that stands for a node in its embedding; empty for a node without spans.

    That of its spans, joined by newlines, up to MAX_EMBED_CHARS code points.
    """
    return "\n".join(node_texts(node, texts, kind_priors))[:MAX_EMBED_CHARS]


def node_texts(
    node: NodeDraft, texts: Mapping[SpanKey, SpanText], kind_priors: Mapping[str, float]
) -> list[str]:
    """Return the texts of a node's spans by `(kind prior desc, offset)`.

    A cell says nothing without its row and column, so it follows the label. `kind_priors` is the object that
    selection weighs with (selection.md); a kind that it does not know comes last.
    """
    return [
        f"{node.label}: {texts[key].text}" if texts[key].kind == "cell" else texts[key].text
        for key in spans_in_order(node, texts, kind_priors)
    ]


def spans_in_order(
    node: NodeDraft, texts: Mapping[SpanKey, SpanText], kind_priors: Mapping[str, float]
) -> list[SpanKey]:
    """Return a node's spans in the order in which they stand for it."""
    return sorted(node.spans, key=lambda key: (-kind_priors.get(texts[key].kind, 0.0), key))
