"""From blocks, which parsers find, to spans, nodes and structure edges, which the store writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from planner.errors import EmptyInput
from planner.hashing import text_hash
from planner.ingest.canonical import counts
from planner.ingest.cut import pieces
from planner.ingest.ids import SOURCE_KIND, node_id, source_node_id
from planner.types import Batch, EdgeDraft, JsonObject, NodeDraft, SourceDraft, Span


@dataclass(frozen=True, slots=True)
class Block:
    """A byte range of canonical text, of one kind, before it is trimmed and cut.

    `parent` is the `start` of the block that it belongs to, a heading's or a definition's; none: the source
    itself.
    """

    start: int
    end: int
    kind: str
    heading_path: tuple[str, ...] = ()
    parent: int | None = None
    speaker: str | None = None
    label: str | None = None
    attributes: JsonObject = field(default_factory=dict)
    time: datetime | None = None


def assemble(draft: SourceDraft, blocks: Sequence[Block], max_span_chars: int) -> Batch:
    """Return the batch of one source whose blocks are trimmed and cut to packable spans.

    Raises EmptyInput where no block holds text.
    """
    ranges = (
        (block, start, end) for block in blocks for start, end in _packable(draft.text, block, max_span_chars)
    )
    batch = weave(draft, ranges)
    if not batch.sources[0].spans:
        raise EmptyInput("the input holds marks of its format, but no text")
    return batch


def weave(draft: SourceDraft, ranges: Iterable[tuple[Block, int, int]]) -> Batch:
    """Return the batch of one source with a span and a node for each range of a block, as it is.

    `nodes[0]` stands for the source, `nodes[1:]` for its spans in order. Each span node is `part_of` the
    first node of its parent block, else the source's, and has the following one as `next`.
    """
    spans: list[Span] = []
    nodes = [source_node(draft)]
    edges: list[EdgeDraft] = []
    seen: Counter[tuple[str, bytes]] = Counter()
    first_at: dict[int, str] = {}
    for block, start, end in ranges:
        span = _span(draft.text, block, start, end, len(spans))
        identity = node_id(draft.source_id, span.kind, span.text_hash, seen[span.kind, span.text_hash])
        seen[span.kind, span.text_hash] += 1
        parent = None if block.parent is None else first_at.get(block.parent)
        edges.append(EdgeDraft(identity, parent or nodes[0].node_id, "part_of"))
        if spans:
            edges.append(EdgeDraft(nodes[-1].node_id, identity, "next"))
        first_at.setdefault(block.start, identity)
        spans.append(span)
        nodes.append(_span_node(draft, block, span, identity))
    return Batch((replace(draft, spans=tuple(spans)),), tuple(nodes), tuple(edges))


def _span(text: bytes, block: Block, start: int, end: int, ordinal: int) -> Span:
    part = text[start:end]
    ascii_bytes, non_ascii_chars = counts(part)
    return Span(
        start=start,
        end=end,
        kind=block.kind,
        ordinal=ordinal,
        ascii_bytes=ascii_bytes,
        non_ascii_chars=non_ascii_chars,
        text_hash=text_hash(part),
        heading_path=block.heading_path,
        speaker=block.speaker,
        message_id=block.attributes.get("message_id"),
    )


def source_node(draft: SourceDraft) -> NodeDraft:
    """Return the node of a source itself: no spans, an anchor for structure and for links to it."""
    return NodeDraft(
        node_id=source_node_id(draft.source_id),
        kind=SOURCE_KIND,
        label=draft.title or draft.source_id,
        spans=(),
        attributes=draft.attributes,
        observed_at=draft.observed_at,
    )


def _span_node(draft: SourceDraft, block: Block, span: Span, identity: str) -> NodeDraft:
    heading = block.heading_path[-1] if block.heading_path else None
    return NodeDraft(
        node_id=identity,
        kind=block.kind,
        label=block.label or heading or block.speaker or draft.title or draft.source_id,
        spans=((draft.source_id, span.start, span.end),),
        attributes={**draft.attributes, **block.attributes} if block.attributes else draft.attributes,
        valid_from=block.time,
        observed_at=block.time or draft.observed_at,
    )


def _packable(text: bytes, block: Block, max_span_chars: int) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges of a block's pieces: trimmed, cut, without those of white space only."""
    part = text[block.start : block.end].decode()
    body = part.strip()
    if not body:
        return
    lead = len(part) - len(part.lstrip())
    if block.kind == "code":
        # The first line of code keeps its indentation.
        lead = part.rfind("\n", 0, lead) + 1
        body = part[lead:].rstrip()
    start = block.start + len(part[:lead].encode())
    for piece in pieces(body, block.kind, max_span_chars):
        end = start + len(piece.encode())
        if not piece.isspace():
            yield start, end
        start = end
