"""HTML: what a reader sees, in order; encodings; what is dropped and what is refused."""

from __future__ import annotations

import pytest

from planner.errors import MalformedInput, UndecodableInput
from planner.ingest import parse
from planner.types import Batch
from tests.ledger_checks import check_graph, check_ledger, texts

PAGE = """<!doctype html><html><head><title> Tide
 tables </title><style>p { color: red }</style></head><body>
<nav><a href="/">Home</a></nav>
<h1>Harbour <em>guide</em></h1>
<p>Berths &amp; <b>prices</b>:<br>240&nbsp;kr</p> loose <div>text<p>潮は三時。</div>
<script>document.write("<p>no</p>")</script><!-- no --><template><p>no</p></template><noscript>no</noscript>
<h2>Code</h2>
<pre>
def f():
    return 1
</pre>
<ul><li>one<li>two <ul><li>deep</ul></ul>
<h2></h2><h3>Below</h3><p>end</body></html>
"""
TABLE = """<table><caption>Prices</caption>
<tr><th>Berth<th>2019<th colspan=2>2020
<tr><td rowspan=2>Öl<td>1<td>2<td>3
<tr><td>4<td><p>5<p>6<td><pre>7</pre>
<tr><td colspan=2>both<td>8<table><tr><td>in<td>ner</table>
</table>"""


def page(text: str) -> Batch:
    batch = parse(text.encode(), source_id="docs/page.html")
    check_ledger(batch, 900)
    check_graph(batch)
    return batch


def test_each_block_that_a_reader_sees_is_a_span() -> None:
    assert texts(page(PAGE)) == [
        ("paragraph", "Home"),
        ("heading", "Harbour guide"),
        ("paragraph", "Berths & prices:\n240\xa0kr"),
        ("paragraph", "loose"),
        ("paragraph", "text"),
        ("paragraph", "潮は三時。"),
        ("heading", "Code"),
        ("code", "def f():\n    return 1"),
        ("paragraph", "one"),
        ("paragraph", "two"),
        ("paragraph", "deep"),
        ("heading", "Below"),
        ("paragraph", "end"),
    ]


def test_the_canonical_text_is_the_extracted_text() -> None:
    (source,) = page("<h1>A</h1><p>b<p>c").sources
    assert (source.text, source.media_type) == (b"A\n\nb\n\nc", "text/html")


def test_spans_have_the_path_of_their_headings() -> None:
    (source,) = page(PAGE).sources
    assert source.spans[0].heading_path == ()
    assert source.spans[7].heading_path == ("Harbour guide", "Code")
    assert source.spans[-1].heading_path == ("Harbour guide", "Code", "Below")


@pytest.mark.parametrize(
    ("text", "title"),
    [(PAGE, "Tide tables"), ("<h2>b</h2><h1>A</h1>", "A"), ("<title> </title>x", "page"), ("x", "page")],
)
def test_the_title_is_the_page_s_else_its_heading_else_its_name(text: str, title: str) -> None:
    assert page(text).sources[0].title == title


def test_cells_are_labelled_across_spanned_rows_and_columns() -> None:
    batch = page(TABLE)
    cells = {text: node.label for (_, text), node in zip(texts(batch), batch.nodes[1:], strict=True)}
    assert cells == {
        "Prices": "page",
        "Berth": "page",
        "2019": "page",
        "2020": "page",
        "Öl": "Berth",
        "1": "Öl / 2019",
        "2": "Öl / 2020",
        "3": "Öl / 2020",
        "4": "Öl / 2019",
        "5": "Öl / 2020",
        "6": "Öl / 2020",
        "7": "page",
        "both": "Berth",
        "8": "both / 2020",
        "in": "page",
        "ner": "in",
    }
    assert batch.sources[0].text.decode().startswith("Prices\n\nBerth\t2019\t2020\nÖl\t1\t2\t3\n4\t5\t6")


@pytest.mark.parametrize(
    ("declared", "codec", "word"),
    [
        ("Shift_JIS", "shift_jis", "潮位表"),
        ("iso-2022-jp", "iso-2022-jp", "潮位表"),
        ("iso-8859-1", "cp1252", "Größe €"),
        ("gb2312", "gb2312", "潮汐表"),
        ("utf-8", "utf-8", "潮位表"),
    ],
)
def test_a_declared_encoding_is_followed(declared: str, codec: str, word: str) -> None:
    raw = f'<html><head><meta charset="{declared}"><body><p>{word}'.encode(codec)
    assert texts(parse(raw, source_id="a.html")) == [("paragraph", word)]


def test_an_encoding_that_is_not_the_declared_one_is_refused_with_its_offset() -> None:
    with pytest.raises(UndecodableInput, match="euc-jp") as caught:
        parse(b'<meta charset="euc-jp"><p>\xff', source_id="a.html")
    assert caught.value.detail["offset"] == 26


def test_elements_nested_too_deeply_are_refused_and_those_that_close_are_not() -> None:
    with pytest.raises(MalformedInput, match="nested"):
        page("<div>" * 100_000 + "deep")
    assert texts(page("<div>" * 1_900 + "deep")) == [("paragraph", "deep")]
    assert len(texts(page("<div><b>x</b></div><p>y<br>" * 2_500))) == 5_000


@pytest.mark.parametrize("tag", ["p", "td", "li", "b", "a", "table><tr><td", "select", "svg", "pre"])
def test_unclosed_elements_are_read(tag: str) -> None:
    check_ledger(page("first" + f"<{tag}>word " * 1_500), 900)


@pytest.mark.parametrize("span", ["0", "-1", "x", "", "9" * 30, "²"])
def test_a_span_that_is_no_number_is_one_column(span: str) -> None:
    batch = page(f"<table><tr><th colspan='{span}'>a<th>b<tr><td>1<td>2</table>")
    assert len(texts(batch)) == 4
