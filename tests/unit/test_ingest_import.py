"""The open JSONL import: the documented example, and every refusal with its line and field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from planner.errors import EmptyInput, IngestError, MalformedInput, UnsupportedInput
from planner.ingest import embed_text, parse, source_node_id, span_texts
from planner.settings import Settings
from planner.types import Batch

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "jsonl-import.md"
IMPORT = "application/vnd.planner.import+jsonl"

SOURCE: dict[str, Any] = {"record": "source", "source_id": "s", "text": "héllo\n\nworld"}
SPAN: dict[str, Any] = {"record": "span", "source_id": "s", "start": 0, "end": 6}
NODE: dict[str, Any] = {"record": "node", "node_id": "n", "kind": "entity"}
EDGE: dict[str, Any] = {"record": "edge", "src": "n", "dst": "elsewhere", "predicate": "knows"}
EMBEDDING: dict[str, Any] = {"record": "embedding", "node_id": "n", "model": "m", "vector": [1, 0.5]}
CITES = {"source_id": "s", "start": 0, "end": 6}


def imported(*records: dict[str, Any], **arguments: Any) -> Batch:
    lines = "\n".join(json.dumps(record) for record in records)
    return parse(lines.encode(), source_id="graph.jsonl", media_type=IMPORT, **arguments)


def test_the_documented_example_is_one_batch() -> None:
    example = re.search(r"```jsonl\n(.*?)```", DOCUMENTATION.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    batch = parse(example[1].encode(), source_id="graph.jsonl")
    assert [source.source_id for source in batch.sources] == ["tides.txt", "log.md"]
    texts = {key: text for key, (_, text) in span_texts(batch).items()}
    gate = next(node for node in batch.nodes if node.node_id == "gate")
    assert [texts[key] for key in gate.spans] == ["The gate closes at 2.9 m."]
    assert ("pilot", "gate", "waits_for", 0.8) in [
        (e.src, e.dst, e.predicate, e.confidence) for e in batch.edges
    ]
    assert (batch.embedding_model, set(batch.embeddings)) == ("my-model", {"gate", "pilot"})
    log = next(node for node in batch.nodes if node.kind == "paragraph")
    assert (log.node_id, source_node_id("tides.txt"), "links_to") in [
        (e.src, e.dst, e.predicate) for e in batch.edges
    ]


def test_the_order_of_lines_does_not_matter() -> None:
    records = [SOURCE, SPAN, NODE | {"spans": [CITES]}, EDGE, EMBEDDING]
    assert imported(*records) == imported(*reversed(records))


def test_a_source_has_exactly_the_spans_it_is_given() -> None:
    late = SPAN | {"start": 8, "end": 13, "kind": "heading", "heading_path": ["A", "B"], "speaker": "Aki"}
    (source,) = imported(late, SOURCE, SPAN).sources
    assert [(s.start, s.end, s.kind, s.ordinal) for s in source.spans] == [
        (0, 6, "paragraph", 0),
        (8, 13, "heading", 1),
    ]
    assert (source.spans[1].heading_path, source.spans[1].speaker) == (("A", "B"), "Aki")


def test_a_span_that_a_node_cites_gets_no_node_of_its_own() -> None:
    batch = imported(SOURCE, SPAN, SPAN | {"start": 8, "end": 13}, NODE | {"spans": [CITES]})
    assert [node.spans for node in batch.nodes] == [(), (("s", 8, 13),), (("s", 0, 6),)]
    ids = {node.node_id for node in batch.nodes}
    assert all({edge.src, edge.dst} <= ids for edge in batch.edges)


def test_a_node_may_cite_a_parsed_span() -> None:
    batch = imported(SOURCE, NODE | {"spans": [CITES]})
    assert [node.spans for node in batch.nodes] == [(), (("s", 8, 13),), (("s", 0, 6),)]


def test_what_a_source_leaves_out_comes_from_the_call() -> None:
    own = SOURCE | {"source_id": "own", "trust": "verified", "class": "truth", "attributes": {"a": 2}}
    batch = imported(SOURCE, own, trust="internal", source_class="cache", attributes={"a": 1, "b": 1})
    assert [(s.trust, s.source_class, s.attributes) for s in batch.sources] == [
        ("internal", "cache", {"a": 1, "b": 1}),
        ("verified", "truth", {"a": 2, "b": 1}),
    ]


def test_a_file_may_hold_edges_alone() -> None:
    batch = imported(EDGE)
    assert (batch.sources, batch.nodes, len(batch.edges)) == ((), (), 1)


BAD: list[tuple[list[dict[str, Any]], str]] = [
    ([{"record": "vertex"}], "line 1: `record` must be"),
    ([{"source_id": "s"}], "line 1: `record` must be"),
    ([EDGE | {"weight": 1}], "line 1, weight: no such field"),
    ([{k: v for k, v in EDGE.items() if k != "dst"}], "line 1, dst: is required"),
    ([EDGE | {"dst": ""}], "line 1, dst"),
    ([EDGE | {"dst": "é" * 257}], "line 1, dst"),
    ([EDGE | {"dst": "a\0"}], "line 1, dst"),
    ([EDGE | {"confidence": 1.5}], "line 1, confidence"),
    ([EDGE | {"confidence": float("nan")}], "line 1, confidence"),
    ([EDGE | {"confidence": "1"}], "line 1, confidence"),
    ([EDGE | {"valid_from": "2024-02-01", "valid_to": "2024-01-01"}], "line 1: valid_from must be before"),
    ([EDGE | {"valid_from": "soon"}], "line 1, valid_from"),
    ([EDGE, EDGE], "line 2: edge .* already on line 1"),
    ([SOURCE | {"source_id": 1}], "line 1, source_id"),
    ([SOURCE | {"trust": "some"}], "line 1, trust"),
    ([SOURCE | {"position": 1}], "line 1: a turn has both"),
    ([SOURCE, SOURCE], "line 2: source_id 's' is already on line 1"),
    ([SPAN], "line 1: source_id: the file has no source 's'"),
    ([SOURCE, SPAN | {"end": 0}], "line 2: start, end"),
    ([SOURCE, SPAN | {"end": 99}], "line 2: start, end"),
    ([SOURCE, SPAN | {"start": -1}], "line 2, start"),
    ([SOURCE, SPAN | {"start": 2}], "line 2: start: byte 2"),
    ([SOURCE, SPAN | {"end": 2}], "line 2: end: byte 2"),
    ([SOURCE, SPAN, SPAN], "line 3: span .* already on line 2"),
    ([SOURCE | {"text": "a\r\nb"}, SPAN | {"end": 1}], "line 1: text"),
    ([SOURCE | {"text": "\ufeffab"}, SPAN | {"end": 3}], "line 1: text"),
    ([SOURCE, NODE | {"spans": [CITES | {"end": 7}]}], "line 2: spans: the file has no span 0-7"),
    ([NODE | {"spans": [CITES]}], "line 1: spans"),
    ([NODE | {"spans": [{"start": 0}]}], "line 1, spans.0.source_id: is required"),
    ([NODE | {"attributes": {"a": float("inf")}}], "line 1: attributes.a"),
    ([NODE | {"attributes": {"a": "\0"}}], "line 1: attributes.a"),
    ([NODE | {"attributes": []}], "line 1, attributes"),
    ([NODE, NODE], "line 2: node_id 'n' is already"),
    ([SOURCE, NODE | {"node_id": source_node_id("s")}], "line 2: node_id"),
    ([EMBEDDING], "line 1: node_id: the file has no node 'n'"),
    ([NODE, EMBEDDING | {"vector": [1.0, float("nan")]}], "line 2, vector.1"),
    ([NODE, EMBEDDING | {"vector": [1e39]}], "line 2, vector.0"),
    ([NODE, EMBEDDING | {"vector": []}], "line 2, vector"),
    ([NODE, EMBEDDING, EMBEDDING], "line 3: embedding of node_id 'n' is already"),
    ([NODE, EMBEDDING, NODE | {"node_id": "o"}, EMBEDDING | {"node_id": "o", "model": "x"}], "line 4: model"),
    (
        [NODE, EMBEDDING, NODE | {"node_id": "o"}, EMBEDDING | {"node_id": "o", "vector": [1]}],
        "line 4: vector",
    ),
]


@pytest.mark.parametrize(("records", "says"), BAD, ids=[says for _, says in BAD])
def test_a_bad_record_is_refused_by_line_and_field(records: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(MalformedInput, match=says) as caught:
        imported(*records)
    assert caught.value.detail["line"] == int(re.findall(r"\d+", says)[0])


@pytest.mark.parametrize(
    ("record", "error"),
    [
        (SOURCE | {"text": " \n"}, EmptyInput),
        (SOURCE | {"media_type": "application/msword"}, UnsupportedInput),
        (SOURCE | {"media_type": "application/pdf"}, UnsupportedInput),
        (SOURCE | {"media_type": "application/vnd.chatgpt.export+json"}, UnsupportedInput),
        (SOURCE | {"media_type": IMPORT}, UnsupportedInput),
    ],
)
def test_what_a_source_is_refused_for_names_its_line(
    record: dict[str, Any], error: type[IngestError]
) -> None:
    with pytest.raises(error, match=r"^line 2: "):
        imported(EDGE, record)


def test_a_broken_line_is_refused_by_its_number() -> None:
    with pytest.raises(MalformedInput, match="line 3: Invalid JSON"):
        parse(f"{json.dumps(EDGE)}\n\n{{broken".encode(), source_id="g.jsonl")


def test_a_node_is_embedded_by_its_weightiest_spans_first() -> None:
    """The priors are those that selection weighs with: changing one changes what comes first."""
    cell, code = SPAN | {"kind": "cell"}, SPAN | {"start": 8, "end": 13, "kind": "code"}
    cites = [CITES, CITES | {"start": 8, "end": 13}]
    batch = imported(SOURCE, cell, code, NODE | {"label": "Row / Column", "spans": cites})
    node = next(node for node in batch.nodes if node.node_id == "n")
    priors = Settings().kind_priors
    assert embed_text(node, span_texts(batch), priors) == "world\nRow / Column: héllo"
    turned = Settings(kind_priors={"cell": 1.0}).kind_priors
    assert embed_text(node, span_texts(batch), turned) == "Row / Column: héllo\nworld"


def test_the_embedded_text_is_bounded_and_empty_without_spans() -> None:
    batch = imported(SOURCE | {"text": "x" * 9_000}, SPAN | {"end": 9_000}, NODE)
    lengths = {
        node.kind: len(embed_text(node, span_texts(batch), Settings().kind_priors)) for node in batch.nodes
    }
    assert lengths == {"source": 0, "paragraph": 2_000, "entity": 0}
