"""The open JSONL import: one file, its lines in any order, becomes one batch (docs/jsonl-import.md)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TypeVar

from blake3 import blake3

from planner.errors import IngestError, MalformedInput, UnsupportedInput
from planner.ingest.blocks import Block, weave
from planner.ingest.canonical import canonical_text
from planner.ingest.formats import checked, parse_source
from planner.ingest.import_records import (
    EdgeRecord,
    EmbeddingRecord,
    NodeRecord,
    SourceRecord,
    SpanRecord,
    read_record,
)
from planner.ingest.media import NOT_ONE_TEXT, PLAIN, media_type_of
from planner.types import Batch, EdgeDraft, NodeDraft, SourceDraft

PARSER_VERSION = "import/1"

SpanKey = tuple[str, int, int]
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


@dataclass(slots=True)
class _Records:
    """The records of a file by what they key, each with its line."""

    sources: dict[str, tuple[int, SourceRecord]] = field(default_factory=dict)
    spans: dict[SpanKey, tuple[int, SpanRecord]] = field(default_factory=dict)
    nodes: dict[str, tuple[int, NodeRecord]] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], tuple[int, EdgeRecord]] = field(default_factory=dict)
    embeddings: dict[str, tuple[int, EmbeddingRecord]] = field(default_factory=dict)


def parse_import(defaults: SourceDraft, max_span_chars: int) -> Batch:
    """Return the batch of an import file; `defaults` carries its text and what its sources leave out.

    A source with span records has exactly those spans, else its media type's parser finds them. A span
    that no node record cites gets a node of its own, with structure edges, as in a parsed source. Raises
    MalformedInput, or what a source's parser raises, naming the line and the field.
    """
    records = _read(defaults.text.decode())
    parsed = _sources(records, defaults, max_span_chars)
    sources = tuple(source for batch in parsed for source in batch.sources)
    nodes = _nodes(records, {(s.source_id, span.start, span.end) for s in sources for span in s.spans})
    cited = {key for node in nodes for key in node.spans}
    own = [node for batch in parsed for node in batch.nodes if cited.isdisjoint(node.spans)]
    kept = {node.node_id for node in own}
    _refuse_taken(records, kept)
    # A structure edge starts at a node of the file; a link may end at a source that has yet to come.
    dropped = {node.node_id for batch in parsed for node in batch.nodes} - kept
    structure = (edge for batch in parsed for edge in batch.edges if dropped.isdisjoint((edge.src, edge.dst)))
    model, vectors = _embeddings(records, kept.union(records.nodes))
    return Batch(
        sources=sources,
        nodes=(*own, *nodes),
        edges=_edges(records, structure),
        embeddings=vectors,
        embedding_model=model,
        predicates=None,
    )


def _read(text: str) -> _Records:
    records = _Records()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        record = read_record(line, number)
        match record:
            case SourceRecord():
                _once(records.sources, record.source_id, record, number, "source_id")
            case SpanRecord():
                _once(records.spans, record.key, record, number, "span")
            case NodeRecord():
                _once(records.nodes, record.node_id, record, number, "node_id")
            case EdgeRecord():
                _once(records.edges, (record.src, record.dst, record.predicate), record, number, "edge")
            case EmbeddingRecord():
                _once(records.embeddings, record.node_id, record, number, "embedding of node_id")
    return records


def _once(into: dict[K, tuple[int, R]], key: K, record: R, number: int, what: str) -> None:
    if key in into:
        raise _malformed(number, f"{what} {key!r} is already on line {into[key][0]}")
    into[key] = (number, record)


def _malformed(number: int, message: str) -> MalformedInput:
    return MalformedInput(f"line {number}: {message}", line=number)


def _sources(records: _Records, defaults: SourceDraft, max_span_chars: int) -> list[Batch]:
    spans: dict[str, list[tuple[int, SpanRecord]]] = {}
    for number, span in records.spans.values():
        if span.source_id not in records.sources:
            raise _malformed(number, f"source_id: the file has no source {span.source_id!r}")
        spans.setdefault(span.source_id, []).append((number, span))
    return [
        _source(number, record, spans.get(record.source_id), defaults, max_span_chars)
        for number, record in records.sources.values()
    ]


def _source(
    number: int,
    record: SourceRecord,
    spans: Sequence[tuple[int, SpanRecord]] | None,
    defaults: SourceDraft,
    max_span_chars: int,
) -> Batch:
    raw = record.text.encode()
    try:
        draft = _draft(record, canonical_text(raw), defaults, explicit=spans is not None)
        if spans is None:
            if draft.media_type in NOT_ONE_TEXT:
                raise UnsupportedInput(f"{draft.media_type!r} is no text of one source; ingest its file")
            return parse_source(draft, max_span_chars)
    except IngestError as error:
        raise type(error)(f"line {number}: {error}", **{**error.detail, "line": number}) from None
    if draft.text != raw:
        raise _malformed(
            number, "text: offsets need \\n newlines and no byte order mark, so that they are exact"
        )
    blocks = sorted(
        (_block(raw, line, span) for line, span in spans), key=lambda block: (block.start, block.end)
    )
    draft = replace(draft, parser_version=f"{PARSER_VERSION} spans={_fingerprint(blocks)}")
    return weave(draft, ((block, block.start, block.end) for block in blocks))


def _fingerprint(blocks: Sequence[Block]) -> str:
    """Return what makes other spans of the same text another version, since the ledger belongs to one."""
    spans = [(b.start, b.end, b.kind, b.heading_path, b.speaker) for b in blocks]
    return blake3(repr(spans).encode()).hexdigest(length=8)


def _draft(record: SourceRecord, text: bytes, defaults: SourceDraft, *, explicit: bool) -> SourceDraft:
    guessed = PLAIN if explicit else media_type_of(record.source_id, text.decode())
    if guessed in NOT_ONE_TEXT:
        guessed = PLAIN
    return checked(
        SourceDraft(
            source_id=record.source_id,
            media_type=record.media_type or guessed,
            text=text,
            spans=(),
            parser_version=PARSER_VERSION,
            source_class=record.source_class or defaults.source_class,
            title=record.title or defaults.title,
            uri=record.uri or defaults.uri,
            trust=record.trust or defaults.trust,
            attributes={**defaults.attributes, **record.attributes},
            observed_at=record.observed_at or defaults.observed_at,
            conversation_id=record.conversation_id,
            position=record.position,
        )
    )


def _block(text: bytes, number: int, span: SpanRecord) -> Block:
    """Return a span record's block, checked against the text of its source."""
    if not span.start < span.end <= len(text):
        raise _malformed(
            number,
            f"start, end: {span.start}-{span.end} is no range of the {len(text)} bytes of {span.source_id!r}",
        )
    for name, at in (("start", span.start), ("end", span.end)):
        if at < len(text) and 0x80 <= text[at] < 0xC0:
            raise _malformed(number, f"{name}: byte {at} of {span.source_id!r} is inside a character")
    return Block(span.start, span.end, span.kind, heading_path=span.heading_path, speaker=span.speaker)


def _nodes(records: _Records, known: AbstractSet[SpanKey]) -> list[NodeDraft]:
    drafts = []
    for number, node in records.nodes.values():
        keys = tuple(sorted({span.key for span in node.spans}))
        for source_id, start, end in keys:
            if (source_id, start, end) not in known:
                raise _malformed(number, f"spans: the file has no span {start}-{end} of source {source_id!r}")
        drafts.append(
            NodeDraft(
                node_id=node.node_id,
                kind=node.kind,
                label=node.label,
                spans=keys,
                attributes=node.attributes,
                confidence=node.confidence,
                valid_from=node.valid_from,
                valid_to=node.valid_to,
                observed_at=node.observed_at,
            )
        )
    return drafts


def _refuse_taken(records: _Records, own: AbstractSet[str]) -> None:
    for number, node in records.nodes.values():
        if node.node_id in own:
            raise _malformed(number, f"node_id {node.node_id!r} is that of a source or span of the file")


def _edges(records: _Records, structure: Iterable[EdgeDraft]) -> tuple[EdgeDraft, ...]:
    """Return the edges of the file and the structure edges that it does not itself describe."""
    edges = {
        key: EdgeDraft(edge.src, edge.dst, edge.predicate, edge.confidence, edge.valid_from, edge.valid_to)
        for key, (_, edge) in records.edges.items()
    }
    for edge in structure:
        edges.setdefault((edge.src, edge.dst, edge.predicate), edge)
    return tuple(edges.values())


def _embeddings(
    records: _Records, nodes: AbstractSet[str]
) -> tuple[str | None, Mapping[str, Sequence[float]]]:
    """Return the one model of the file and its vectors by node id."""
    first: EmbeddingRecord | None = None
    vectors: dict[str, Sequence[float]] = {}
    for number, record in records.embeddings.values():
        first = first or record
        if record.node_id not in nodes:
            raise _malformed(number, f"node_id: the file has no node {record.node_id!r}")
        if record.model != first.model:
            raise _malformed(
                number, f"model: {record.model!r} after {first.model!r}; a file brings one model"
            )
        if len(record.vector) != len(first.vector):
            raise _malformed(
                number,
                f"vector: {len(record.vector)} dimensions after {len(first.vector)}; a model has one size",
            )
        vectors[record.node_id] = record.vector
    return (first.model if first else None), vectors
