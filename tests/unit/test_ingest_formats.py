"""Every format, and what makes files hard: scripts, newlines, marks, long lines, sizes, absent libraries."""

from __future__ import annotations

import codecs
import sys

import pytest

from planner.errors import EmptyInput, IngestError, UnsupportedInput
from planner.ingest import parse
from planner.ingest.canonical import canonical_text
from tests.format_files import FORMATS, OWN_BYTES, TEXT_FORMATS, file_of
from tests.ledger_checks import check_ledger, written

TEXTS = ["The pilot boards at the outer buoy.", "潮は三時に満ちる。水門を閉じよ。", "Größe — naïve façade"]
MAIL = ("a.eml", "a.mbox")
"""Mail begins with a header, or a line `From `; nothing may stand before it."""

formats = pytest.mark.parametrize("name", FORMATS)


@formats
def test_every_text_is_found_in_every_script(name: str) -> None:
    batch = parse(file_of(name, TEXTS), source_id=name)
    check_ledger(batch, 900)
    assert all("".join(text.split()) in written(batch) for text in TEXTS)


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_newlines_make_no_difference(name: str) -> None:
    # Lines of mail end in a line feed (RFC 5322).
    for newline in ("\r\n",) if name in MAIL else ("\r\n", "\r"):
        found = parse(file_of(name, TEXTS, newline), source_id=name)
        assert found == parse(file_of(name, TEXTS), source_id=name)


@pytest.mark.parametrize("name", [name for name in TEXT_FORMATS if name not in MAIL])
def test_mixed_newlines_and_a_byte_order_mark_make_no_difference(name: str) -> None:
    lines = file_of(name, TEXTS).split(b"\n")
    mixed = b"".join(line + (b"\r\n", b"\n", b"\r")[n % 3] for n, line in enumerate(lines[:-1])) + lines[-1]
    expected = parse(file_of(name, TEXTS), source_id=name)
    assert parse(codecs.BOM_UTF8 + mixed, source_id=name) == expected
    wide = codecs.BOM_UTF16_LE + file_of(name, TEXTS).decode().encode("utf-16-le")
    assert parse(wide, source_id=name) == expected


@formats
def test_a_huge_line_is_cut_into_packable_spans(name: str) -> None:
    line = "漢字とwords。 " * 20_000
    batch = parse(file_of(name, [line]), source_id=name)
    check_ledger(batch, 900)
    kept = written(batch).replace("//", "")
    assert "".join(line.split()) in kept


@pytest.mark.parametrize("name", OWN_BYTES)
def test_source_code_and_tables_are_cited_at_their_own_bytes(name: str) -> None:
    raw = file_of(name, TEXTS, "\r\n", bom=True)
    (source,) = parse(raw, source_id=name).sources
    assert source.text == canonical_text(raw)


@formats
def test_a_file_without_text_is_empty(name: str) -> None:
    nothing = {
        "a.py": b"\n\n",
        "A.java": b"{\n}\n",
        "a.csv": b",,\n,,\n",
        "a.tsv": b"\t\n",
        "a.html": b"<html><script>x()</script><style>p{}</style>",
        "conversations.json": b'[{"id": "c", "mapping": {}}]',
        "claude.json": b'[{"uuid": "c", "chat_messages": []}]',
        "a.eml": b"From: a@example.org\n\n",
        "a.mbox": b"From a Wed\nFrom: a@example.org\n\n",
        "a.pdf": file_of("a.pdf", [""]),
    }
    with pytest.raises(EmptyInput):
        parse(nothing[name], source_id=name)


@formats
def test_any_prefix_and_any_lost_byte_is_read_or_refused(name: str) -> None:
    raw = file_of(name, TEXTS)
    for at in range(0, len(raw), max(1, len(raw) // 97)):
        for broken in (raw[:at], raw[:at] + raw[at + 1 :], raw[:at] + b'"<{[' + raw[at:]):
            try:
                check_ledger(parse(broken, source_id=name), 900)
            except IngestError as error:
                assert str(error)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("a.html", "selectolax.lexbor", "evidence-planner[html]"),
        ("a.pdf", "pypdfium2", "evidence-planner[pdf]"),
    ],
)
def test_without_its_library_a_format_is_refused_and_its_extra_named(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnsupportedInput) as caught:
        parse(file_of(name, TEXTS), source_id=name)
    assert extra in str(caught.value)
