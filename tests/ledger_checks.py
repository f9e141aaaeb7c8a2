"""What is true of every parsed batch, whatever the format."""

from __future__ import annotations

from itertools import pairwise

from planner.hashing import text_hash
from planner.ingest import source_node_id
from planner.types import Batch, SourceDraft


def check_ledger(batch: Batch, max_span_chars: int) -> None:
    """Spans are exact, ordered, packable ranges of their source, with true counts and hashes."""
    for source in batch.sources:
        check_spans(source, max_span_chars)


def check_spans(source: SourceDraft, max_span_chars: int) -> None:
    assert [span.ordinal for span in source.spans] == list(range(len(source.spans)))
    for span in source.spans:
        raw = source.text[span.start : span.end]
        text = raw.decode()  # fails off a code-point boundary
        assert text.strip()
        assert len(text) <= max_span_chars
        assert span.ascii_bytes == sum(byte < 0x80 for byte in raw)
        assert span.non_ascii_chars == sum(ord(char) >= 0x80 for char in text)
        assert span.text_hash == text_hash(raw)
    assert all(one.end <= other.start for one, other in pairwise(source.spans))


def check_graph(batch: Batch) -> None:
    """Each span of the one source has a node, `next` chains them, `part_of` leads to the source's node."""
    (source,) = batch.sources
    ids = [node.node_id for node in batch.nodes]
    assert len(set(ids)) == len(ids)
    assert ids[0] == source_node_id(source.source_id)
    assert [node.spans for node in batch.nodes[1:]] == [
        ((source.source_id, span.start, span.end),) for span in source.spans
    ]
    ends = [(edge.src, edge.dst, edge.predicate) for edge in batch.edges]
    assert len(set(ends)) == len(ends)
    assert [end for end in ends if end[2] == "next"] == [(a, b, "next") for a, b in pairwise(ids[1:])]
    parents = {src: dst for src, dst, predicate in ends if predicate == "part_of"}
    assert set(parents) == set(ids[1:])
    for node in ids[1:]:
        above, steps = node, 0
        while above in parents:
            above, steps = parents[above], steps + 1
            assert steps <= len(ids), "part_of has a cycle"
        assert above == ids[0]


def texts(batch: Batch) -> list[tuple[str, str]]:
    """Return the kind and text of every span, in order."""
    return [
        (span.kind, source.text[span.start : span.end].decode())
        for source in batch.sources
        for span in source.spans
    ]


def written(batch: Batch) -> str:
    """Return the text of all spans without white space: what was kept, however it was cut."""
    return "".join("".join(text.split()) for _, text in texts(batch))
