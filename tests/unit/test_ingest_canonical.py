"""Canonical text: what is accepted, what is refused and how it says so."""

from __future__ import annotations

import codecs

import pytest

from planner.errors import (
    BinaryInput,
    EmptyInput,
    MalformedInput,
    NulInput,
    UndecodableInput,
    UnsupportedInput,
)
from planner.ingest import parse, scope_id, source_node_id
from planner.ingest.canonical import canonical_text, counts


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a\r\nb\rc\n\rd", "a\nb\nc\n\nd"),
        (codecs.BOM_UTF8 + "é".encode(), "é"),
        (codecs.BOM_UTF16_LE + "é漢😀".encode("utf-16-le"), "é漢😀"),
        (codecs.BOM_UTF16_BE + "é\r\n".encode("utf-16-be"), "é\n"),
        ("a\ufeffb\u2028c\x0c\x1b[0m  ".encode(), "a\ufeffb\u2028c\x0c\x1b[0m  "),
        ("e\u0301".encode(), "e\u0301"),
        (
            b"a scraped page with one stray \x01 " + b"text " * 50,
            "a scraped page with one stray \x01 " + "text " * 50,
        ),
    ],
)
def test_only_newlines_and_byte_order_mark_change(raw: bytes, text: str) -> None:
    assert canonical_text(raw).decode() == text


@pytest.mark.parametrize(
    ("raw", "error", "says"),
    [
        (b"", EmptyInput, "empty"),
        (" \r\n\t\u3000".encode(), EmptyInput, "white space"),
        (codecs.BOM_UTF8, EmptyInput, "white space"),
        (b"ab\0c", NulInput, "offset 2"),
        (codecs.BOM_UTF16_LE + "ab\0".encode("utf-16-le"), NulInput, "character 2"),
        (b"abc\xff", UndecodableInput, "offset 3"),
        (b"abc\xed\xa0\x80", UndecodableInput, "offset 3"),
        (codecs.BOM_UTF16_LE + b"a", UndecodableInput, "offset 2"),
        (b"\x01\x02\x03binary", BinaryInput, "0x01 at offset 0"),
        (b"%PDF-1.7 text", BinaryInput, "PDF"),
        (b"PK\x03\x04...", BinaryInput, "ZIP"),
        (b"\x89PNG\r\n\x1a\n\0", BinaryInput, "PNG"),
    ],
)
def test_what_is_no_text_is_refused_and_says_where(raw: bytes, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        canonical_text(raw)


def test_counts_are_of_ascii_bytes_and_other_characters() -> None:
    assert counts("aé漢😀\n".encode()) == (2, 3)
    assert counts(b"") == (0, 0)


@pytest.mark.parametrize(
    ("source_id", "raw", "media_type"),
    [
        ("a.md", b"[]", "text/markdown"),
        ("A.MARKDOWN", b"x", "text/markdown"),
        ("a.txt", b"# x", "text/plain"),
        ("a.py", b"x = 1", "text/x-python"),
        ("a.PYI", b"x: int", "text/x-python"),
        ("Main.java", b"class A {}", "text/x-java"),
        ("a.csv", b"a,b\n1,2", "text/csv"),
        ("a.tsv", b"a\tb\n1\t2", "text/tab-separated-values"),
        ("a.html", b"<p>x", "text/html"),
        ("page", b"\n<!DOCTYPE html><p>x", "text/html"),
        ("a.eml", b"Subject: x\n\ny", "message/rfc822"),
        ("a.mbox", b"From a Wed\nSubject: x\n\ny", "application/mbox"),
        ("notes", b"# x\n\ny", "text/markdown"),
        ("notes", b"x", "text/plain"),
        ("v1.2/notes", b"{not json", "text/plain"),
        ("a.json", b'[{"content": "x"}]', "application/vnd.conversation+json"),
        ("a.json", b'{"messages": [{"content": "x"}]}', "application/vnd.conversation+json"),
        ("a.jsonl", b'\n{"content": "x"}\n{"content": "y"}', "application/vnd.conversation+json"),
        ("stdin", b'{"role": "user",\n "content": "x"}', None),
    ],
)
def test_the_media_type_is_guessed(source_id: str, raw: bytes, media_type: str | None) -> None:
    if media_type is None:
        with pytest.raises(MalformedInput, match="line 1"):
            parse(raw, source_id=source_id)
    else:
        assert parse(raw, source_id=source_id).sources[0].media_type == media_type


@pytest.mark.parametrize(
    ("source_id", "raw", "error", "says"),
    [
        ("a.xml", b"<p>x", UnsupportedInput, "XML"),
        ("package.json", b'{"name": "x"}', UnsupportedInput, "neither"),
        ("a.json", b"[1, 2]", UnsupportedInput, "neither"),
        ("a.json", b'{"a": }', MalformedInput, "line 1, column 7"),
        ("a.json", b"[" * 200_000, MalformedInput, "nested"),
        ("a.jsonl", b"\n{broken\n", MalformedInput, "line 2"),
    ],
)
def test_json_and_markup_that_no_parser_reads_are_refused(
    source_id: str, raw: bytes, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        parse(raw, source_id=source_id)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("source_id", ""),
        ("source_id", "é" * 257),
        ("source_id", "a\0b"),
        ("title", "a\0b"),
        ("title", "\ud800"),
        ("uri", "a\0b"),
        ("position", 1),
        ("conversation_id", "c"),
        ("attributes", {"a": "b\0"}),
        ("attributes", {"a": [float("nan")]}),
        ("attributes", {"a": {"b": object()}}),
        ("attributes", {"\ud800": 1}),
    ],
)
def test_facts_that_no_store_can_hold_are_refused(name: str, value: object) -> None:
    arguments: dict[str, object] = {"source_id": "a.txt", name: value}
    with pytest.raises(MalformedInput):
        parse(b"text", **arguments)  # type: ignore[arg-type]


def test_an_unknown_media_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnsupportedInput, match="text/markdown"):
        parse(b"x", source_id="a", media_type="application/msword")


def test_the_size_of_pieces_is_in_the_parser_version() -> None:
    versions = {parse(b"x", source_id="a", max_span_chars=n).sources[0].parser_version for n in (100, 900)}
    assert len(versions) == 2


def test_ids_are_fixed_for_all_time() -> None:
    assert str(scope_id("demo")) == "bc67b561-f30e-8dac-9b0e-6ba6d6873b50"
    assert source_node_id("docs/a.md") == "0956717375385a3d99f069acd5a6be2d"
    assert parse(b"one\n\none", source_id="a.txt").nodes[2].node_id == "4fd34296bbe3b0e120dbd308893ed1d7"


def test_a_scope_id_is_a_uuid_of_version_8() -> None:
    assert {(scope_id(str(n)).version, scope_id(str(n)).variant) for n in range(50)} == {
        (8, "specified in RFC 4122")
    }
