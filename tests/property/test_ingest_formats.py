"""Whatever the format: spans are exact, and no text that was put in is missing."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import IngestError
from planner.ingest import parse
from planner.ingest.canonical import canonical_text
from planner.ingest.delimited import rows
from tests import ingest_strategies as authored
from tests.format_files import FORMATS, OWN_BYTES, TEXT_FORMATS, file_of
from tests.ledger_checks import check_graph, check_ledger, written

SIZES = st.sampled_from([100, 900])
SIGNS = "ab<>&;,\"'`#/*()[]{}\\=:|@ \t" + "\n" * 4 + "def class function 漢é。"
some = settings(deadline=None, max_examples=40)


@pytest.mark.parametrize("name", FORMATS)
@some
@given(st.lists(authored.words, min_size=1, max_size=8), SIZES)
def test_every_format_keeps_every_text_at_exact_spans(name: str, texts: list[str], size: int) -> None:
    batch = parse(file_of(name, texts), source_id=name, max_span_chars=size)
    check_ledger(batch, size)
    check_graph(batch)
    assert all("".join(text.split()) in written(batch) for text in texts)


@pytest.mark.parametrize("name", TEXT_FORMATS)
@some
@given(st.text(st.sampled_from(SIGNS), max_size=200).filter(str.strip), SIZES, authored.newlines)
def test_any_text_under_any_name_is_parsed_or_refused(name: str, text: str, size: int, newline: str) -> None:
    raw = text.replace("\n", newline).encode()
    try:
        batch = parse(raw, source_id=name, max_span_chars=size)
    except IngestError:
        return
    check_ledger(batch, size)
    if name in OWN_BYTES:
        assert batch.sources[0].text == canonical_text(raw)


@some
@given(
    st.lists(st.lists(authored.texts, min_size=2, max_size=4), min_size=1, max_size=6),
    st.sampled_from(",;\t|"),
)
def test_cells_are_those_that_the_csv_module_reads(table: list[list[str]], delimiter: str) -> None:
    out = io.StringIO()
    clean = [[cell.replace("\r", "") for cell in row] for row in table]
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(clean)
    text = out.getvalue()
    found = [[text[a:b].replace('""', '"') for a, b in row] for row in rows(text, delimiter)]
    assert found == [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]


@pytest.mark.parametrize("module", ["ast", "asyncio", "contextlib", "dataclasses", "email", "typing"])
def test_definitions_are_those_that_the_compiler_finds(module: str) -> None:
    """Python's own grammar is the oracle of the rule that reads every language."""
    library = Path(ast.__file__).parent
    files = sorted((library / module).glob("*.py")) or [library / f"{module}.py"]
    for file in files:
        raw = file.read_bytes()
        if not raw.strip():
            continue
        batch = parse(raw, source_id=file.name)
        check_ledger(batch, 900)
        labels = {node.label for node in batch.nodes}
        assert {name for name in _definitions(ast.parse(raw), "") if name not in labels} == set()


def _definitions(holder: ast.Module | ast.ClassDef, path: str) -> list[str]:
    found: list[str] = []
    for node in holder.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(path + node.name)
        if isinstance(node, ast.ClassDef):
            found += _definitions(node, f"{path}{node.name}.")
    return found
