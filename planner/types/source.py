"""What ingest makes of an input, and what it reports: source, span, node, edge, batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from planner.types.refs import STRUCTURE, JsonObject, SourceClass, SpanRef, Trust


@dataclass(frozen=True, slots=True)
class Span:
    """A row of the span ledger: a packable byte range with the counts that token formulas need."""

    start: int
    end: int
    kind: str
    ordinal: int
    ascii_bytes: int
    non_ascii_chars: int
    text_hash: bytes
    heading_path: tuple[str, ...] = ()
    speaker: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class SourceDraft:
    """A parsed source, ready to be written as one version.

    `text` is the canonical text: UTF-8, `\\n` newlines, otherwise the author's bytes. `spans` are in
    the order of their ordinals. A source of a conversation has its id and position there. A version that
    extends the one of `extends_tx` holds only what comes after it. A cache names the spans that it was made
    from, in their order.
    """

    source_id: str
    media_type: str
    text: bytes
    spans: tuple[Span, ...]
    parser_version: str
    source_class: SourceClass = "truth"
    title: str | None = None
    uri: str | None = None
    trust: Trust = "external"
    attributes: JsonObject = field(default_factory=dict)
    observed_at: datetime | None = None
    conversation_id: str | None = None
    position: int | None = None
    extends_tx: int | None = None
    made_from: tuple[SpanRef, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """A node and the spans it stands for: `(source_id, start, end)` of the drafts in the same batch."""

    node_id: str
    kind: str
    label: str
    spans: tuple[tuple[str, int, int], ...]
    attributes: JsonObject = field(default_factory=dict)
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    observed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EdgeDraft:
    """A directed edge between two nodes of a scope."""

    src: str
    dst: str
    predicate: str
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What one ingest transaction writes: usually one source, or all that an open import file holds.

    `embeddings` are vectors that the input itself brought, by node id, for the model named in
    `embedding_model` (name); where it brings any, only those nodes have vectors, else the scope's embedder
    makes them. Of the edges that leave the batch's nodes, those with one of `predicates` are replaced (None:
    all of them).
    """

    sources: tuple[SourceDraft, ...]
    nodes: tuple[NodeDraft, ...]
    edges: tuple[EdgeDraft, ...]
    embeddings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    embedding_model: str | None = None
    predicates: frozenset[str] | None = STRUCTURE


@dataclass(frozen=True, slots=True)
class IngestedSource:
    """What became of one source: its newest version, and what changed with it."""

    source_id: str
    status: Literal["new", "changed", "unchanged", "withdrawn"]
    version_tx: int
    spans: int


@dataclass(frozen=True, slots=True)
class IngestFailure:
    """One input that could not be ingested, and why; the rest of the ingest went on."""

    path: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The result of one ingest call, source by source. Counts are of rows written, over all sources."""

    scope: str
    sources: tuple[IngestedSource, ...] = ()
    failures: tuple[IngestFailure, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            "scope": self.scope,
            "sources": [asdict(source) for source in self.sources],
            "failures": [asdict(failure) for failure in self.failures],
            "counts": dict(self.counts),
        }
