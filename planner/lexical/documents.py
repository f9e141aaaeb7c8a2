"""What of a node version is indexed: the terms of its texts, and those of what they stand in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.ingest import SpanText
from planner.ingest.embed_text import SpanKey, node_texts, spans_in_order
from planner.lexical.packing import Terms, joined
from planner.lexical.terms import numbered
from planner.types import Batch, NodeDraft


class Setting(NamedTuple):
    """What a span stands in: the title of its source, its heading path, its speaker."""

    title: str | None
    heading_path: Sequence[str]
    speaker: str | None


class Doc(NamedTuple):
    """A node version as BM25 counts it: the terms of its texts, and of their settings."""

    terms: Terms
    context: Terms

    @property
    def length(self) -> int:
        """How many terms it has, words of grammar included."""
        return len(self.terms) + len(self.context)

    @property
    def whole(self) -> Terms:
        """All its terms, as far as how often they are there matters."""
        return np.concatenate((self.terms, self.context))


class Reader:
    """Makes documents of nodes; what it has analysed once it keeps."""

    def __init__(self, kind_priors: Mapping[str, float]) -> None:
        """Take the object that orders a node's spans (`node_texts`)."""
        self._kind_priors = kind_priors
        self._known: dict[tuple[str, ...], Terms] = {}

    def document(
        self, node: NodeDraft, texts: Mapping[SpanKey, SpanText], settings: Mapping[SpanKey, Setting]
    ) -> Doc:
        """Return the document of a node with spans, each of which has a text and a setting."""
        ordered = spans_in_order(node, texts, self._kind_priors)
        said = node_texts(node, texts, self._kind_priors)
        context = context_of((settings[key] for key in ordered), said)
        return Doc(self._terms(said), self._terms(context))

    def documents(
        self, batch: Batch, nodes: Iterable[NodeDraft], texts: Mapping[SpanKey, SpanText]
    ) -> dict[str, Doc]:
        """Return the documents of those of a batch's nodes that have spans, by node id."""
        settings = {
            (source.source_id, span.start, span.end): Setting(source.title, span.heading_path, span.speaker)
            for source in batch.sources
            for span in source.spans
        }
        return {node.node_id: self.document(node, texts, settings) for node in nodes if node.spans}

    def _terms(self, parts: Sequence[str]) -> Terms:
        key = tuple(parts)
        if key not in self._known:
            self._known[key] = joined([numbered(part) for part in key])
        return self._known[key]


def context_of(settings: Iterable[Setting], said: Sequence[str]) -> list[str]:
    """Return the titles, headings and speakers of a node's spans, each once, in their order.

    What the node itself says, as a heading does, is not said again.
    """
    parts = (part for s in settings for part in (s.title, *s.heading_path, s.speaker) if part)
    return [part for part in dict.fromkeys(parts) if part not in said]
