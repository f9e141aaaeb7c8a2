"""PDF: pages and their numbers, titles, and what is no text."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from planner.errors import EmptyInput, MalformedInput
from planner.ingest import parse
from tests.ledger_checks import check_graph, check_ledger, texts
from tests.pdf_files import pdf


def test_each_page_is_a_paragraph_with_its_number() -> None:
    batch = parse(pdf([["First page,", "two lines."], [""], ["潮は三時に満ちる。"]]), source_id="a.pdf")
    check_graph(batch)
    assert texts(batch) == [("paragraph", "First page,\ntwo lines."), ("paragraph", "潮は三時に満ちる。")]
    assert [node.attributes for node in batch.nodes[1:]] == [{"page": 1}, {"page": 3}]
    assert batch.sources[0].text.decode() == "First page,\ntwo lines.\n\n潮は三時に満ちる。"


def test_a_pdf_is_known_by_its_first_bytes_whatever_its_name() -> None:
    (source,) = parse(pdf([["text here"]]), source_id="report.txt").sources
    assert source.media_type == "application/pdf"


def test_a_word_that_a_line_end_hyphenates_is_joined() -> None:
    assert texts(parse(pdf([["the har-", "bour gate"]]), source_id="a.pdf")) == [
        ("paragraph", "the harbour gate")
    ]


@pytest.mark.parametrize(("named", "title"), [("Tide 潮", "Tide 潮"), (None, "report"), (" ", "report")])
def test_the_title_is_the_document_s_else_the_name(named: str | None, title: str) -> None:
    assert parse(pdf([["text here"]], named), source_id="docs/report.pdf").sources[0].title == title


def test_a_long_page_is_cut_and_each_part_keeps_its_page() -> None:
    batch = parse(pdf([["A sentence that ends here."] * 100]), source_id="a.pdf")
    check_ledger(batch, 900)
    assert len(batch.nodes) > 4
    assert {node.attributes["page"] for node in batch.nodes[1:]} == {1}


def test_a_scan_is_empty_and_says_what_to_do() -> None:
    with pytest.raises(EmptyInput, match="OCR"):
        parse(pdf([[""], [""]]), source_id="scan.pdf")


@pytest.mark.parametrize("raw", [b"%PDF-1.7\nnothing", b"no pdf at all", pdf([["x y"]])[:200], b""])
def test_what_is_no_pdf_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedInput, match="not a readable PDF"):
        parse(raw, source_id="a.pdf")


def test_threads_may_read_at_once() -> None:
    files = [pdf([[f"page {n} of file {m}"] for n in range(20)]) for m in range(8)]
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda raw: texts(parse(raw, source_id="a.pdf")), files * 4))
    assert read == [[("paragraph", f"page {n} of file {m}") for n in range(20)] for m in range(8)] * 4
