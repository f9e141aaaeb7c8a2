"""CSV and TSV: cells at their bytes, labelled by row and column."""

from __future__ import annotations

import pytest

from planner.errors import MalformedInput
from planner.ingest import embed_text, parse, span_texts
from planner.types import Batch
from tests.ledger_checks import check_ledger, texts

TABLE = '価格表,"Price, kr",Note\r\nBerth A,240,"say ""ahoy""\nloudly"\r\n\r\n日本,,x,beyond\r\n'


def table(text: str, source_id: str = "a.csv") -> Batch:
    batch = parse(text.encode(), source_id=source_id)
    check_ledger(batch, 900)
    return batch


def test_a_cell_is_cited_by_its_bytes_inside_its_quotes() -> None:
    expected = [
        "価格表",
        "Price, kr",
        "Note",
        "Berth A",
        "240",
        'say ""ahoy""\nloudly',
        "日本",
        "x",
        "beyond",
    ]
    assert texts(table(TABLE)) == [("cell", text) for text in expected]


def test_a_cell_is_labelled_by_row_and_column_and_embedded_behind_its_label() -> None:
    batch = table(TABLE)
    labels = [node.label for node in batch.nodes]
    assert labels == [
        *["a"] * 4,
        "価格表",
        "Berth A / Price, kr",
        "Berth A / Note",
        "価格表",
        "日本 / Note",
        "日本",
    ]
    price = next(node for node in batch.nodes if node.label == "Berth A / Price, kr")
    assert embed_text(price, span_texts(batch), {"cell": 1.0}) == "Berth A / Price, kr: 240"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_guessed(delimiter: str) -> None:
    rows = [["name", "width", "depth"], ["north", "3,5", "2"], ["south", "4,5", "3"]]
    quoted = [[f'"{cell}"' if delimiter in cell else cell for cell in row] for row in rows]
    text = "\n".join(delimiter.join(row) for row in quoted)
    assert [text for _, text in texts(table(text))] == [cell for row in rows for cell in row]


def test_tabs_delimit_tsv_whatever_it_holds() -> None:
    batch = table("a,b;c\td|e\n1,2,3\t4,5,6\n", "a.tsv")
    assert [text for _, text in texts(batch)] == ["a,b;c", "d|e", "1,2,3", "4,5,6"]


def test_a_quote_inside_a_cell_is_a_character() -> None:
    assert [text for _, text in texts(table('size,n\n5" pipe,1\n'))] == ["size", "n", '5" pipe', "1"]


def test_a_quote_that_is_never_closed_is_refused_with_its_line() -> None:
    with pytest.raises(MalformedInput, match="line 3") as caught:
        table('a,b\n1,2\n3,"4\n5,6\n')
    assert caught.value.detail["line"] == 3


@pytest.mark.parametrize("text", ['"' * 40_000 + "x", "a," * 40_000, '""",' * 20_001, "\n" * 40_000 + "x"])
def test_a_table_of_signs_is_read_or_refused(text: str) -> None:
    try:
        table(text)
    except MalformedInput as error:
        assert "line" in error.detail


def test_a_long_cell_is_cut_and_each_part_keeps_its_label() -> None:
    batch = table("name,text\nr," + "A sentence here. " * 200)
    assert {node.label for node in batch.nodes[4:]} == {"r / text"}
    assert len(batch.nodes) > 6


def test_a_changed_cell_is_the_only_new_node() -> None:
    before = {node.node_id for node in table("n,v\na,1\nb,2\n").nodes}
    after = {node.node_id for node in table("n,v\na,1\nb,3\n").nodes}
    assert len(after - before) == 1
