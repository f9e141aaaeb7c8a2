"""The next turns of a conversation: parsed as if they were all of it, then put behind what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.ingest.conversation import SEPARATOR
from planner.ingest.ids import node_id
from planner.types import Batch, EdgeDraft, NodeDraft, Span


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a conversation: its newest version, its last span with that one's node, its last message.

    `node_id` is None where the last span has no node of its own, as in an imported graph.
    """

    version_tx: int
    ordinal: int
    node_id: str | None
    position: int


def continued(turns: Batch, tail: Tail, taken: Mapping[bytes, int]) -> Batch:
    """Return the batch of a version that extends the one of `tail` by `turns`, which count from nothing.

    Its text begins with the separator of messages, so that the texts of a chain, one after another, are the
    conversation's. Ordinals, positions and the `next` edges go on. `taken` says how often a text is there
    already, by its hash: the nodes get the ids that they have when the whole conversation is ingested.
    """
    source = turns.sources[0]
    spans = tuple(_moved(span, tail) for span in source.spans)
    seen = Counter(taken)
    renamed: dict[str, str] = {}
    nodes = []
    for node, span in zip(turns.nodes[1:], spans, strict=True):
        identity = node_id(source.source_id, span.kind, span.text_hash, seen[span.text_hash])
        seen[span.text_hash] += 1
        renamed[node.node_id] = identity
        nodes.append(_continued_node(node, span, identity, source.source_id, tail))
    edges = [
        replace(edge, src=renamed.get(edge.src, edge.src), dst=renamed.get(edge.dst, edge.dst))
        for edge in turns.edges
    ]
    if tail.node_id is not None:
        edges.insert(0, EdgeDraft(tail.node_id, nodes[0].node_id, "next"))
    text = SEPARATOR.encode() + source.text
    draft = replace(source, text=text, spans=spans, extends_tx=tail.version_tx)
    return Batch((draft,), tuple(nodes), tuple(edges))


def _moved(span: Span, tail: Tail) -> Span:
    shift = len(SEPARATOR.encode())
    return replace(
        span, start=span.start + shift, end=span.end + shift, ordinal=span.ordinal + tail.ordinal + 1
    )


def _continued_node(node: NodeDraft, span: Span, identity: str, source_id: str, tail: Tail) -> NodeDraft:
    position = node.attributes["position"] + tail.position + 1
    return replace(
        node,
        node_id=identity,
        spans=((source_id, span.start, span.end),),
        attributes={**node.attributes, "position": position},
    )
