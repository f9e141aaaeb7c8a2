"""The shipped corpus: it all parses, links lead somewhere, and the labels are really in it."""

from __future__ import annotations

from planner.demo import corpus_folder, questions
from planner.ingest import parse, source_node_id
from planner.reading import discover, read
from planner.types import Batch


def corpus() -> dict[str, Batch]:
    files = list(discover([corpus_folder()]))
    return {file.source_id: parse(read(file, 1_000_000), source_id=file.source_id) for file in files}


def test_every_label_lies_within_one_span_of_its_source() -> None:
    batches = corpus()
    for question in questions():
        for phrase in question.must_include:
            (source,) = batches[phrase.source_id].sources
            texts = [source.text[span.start : span.end].decode() for span in source.spans]
            assert any(phrase.text in text for text in texts), phrase


def test_every_link_leads_to_a_page_of_the_corpus() -> None:
    batches = corpus()
    pages = {source_node_id(source_id) for source_id in batches}
    links = [edge.dst for batch in batches.values() for edge in batch.edges if edge.predicate == "links_to"]
    assert len(links) > 15
    assert set(links) <= pages


def test_the_corpus_holds_every_kind_of_span_and_several_scripts() -> None:
    spans = [span for batch in corpus().values() for source in batch.sources for span in source.spans]
    assert {span.kind for span in spans} == {"paragraph", "heading", "cell", "code", "message"}
    assert sum(span.non_ascii_chars > span.ascii_bytes for span in spans) > 10


def test_the_same_corpus_gives_the_same_batches() -> None:
    assert corpus() == corpus()
