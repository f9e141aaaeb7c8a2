"""Whatever is parsed: spans are exact, ordered, packable ranges with true counts and hashes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st

from planner.errors import EmptyInput, MalformedInput
from planner.ingest import parse
from planner.types import Batch
from tests import ingest_strategies as authored
from tests.ledger_checks import check_graph, check_ledger

SIZES = st.sampled_from([100, 130, 900])


def parsed(raw: bytes, source_id: str, max_span_chars: int) -> Batch:
    try:
        return parse(raw, source_id=source_id, max_span_chars=max_span_chars)
    except (EmptyInput, MalformedInput):
        # White space or markup alone, or front matter by accident.
        assume(False)
        raise


@authored.unhurried
@given(authored.raw_files(authored.written), SIZES)
def test_spans_of_plain_text_are_exact(raw: bytes, size: int) -> None:
    batch = parsed(raw, "notes/a.txt", size)
    check_ledger(batch, size)
    check_graph(batch)


@authored.unhurried
@given(authored.raw_files(authored.markdown), SIZES)
@example(b"1.\n\n   a\n", 100)
@example(b"- # a\n- 1. # 1\n", 100)
@example(b"# # #\n\n> # a #\n> b\n> ===\n", 100)
@example("- | a | 漢 |\n  |---|---|\n  | \\| | b\n".encode(), 100)
def test_spans_of_markdown_are_exact(raw: bytes, size: int) -> None:
    batch = parsed(raw, "notes/a.md", size)
    check_ledger(batch, size)
    check_graph(batch)


@authored.unhurried
@given(authored.conversations, SIZES)
def test_spans_of_a_conversation_are_exact(messages: list[dict[str, Any]], size: int) -> None:
    batch = parsed(json.dumps(messages).encode(), "chat.json", size)
    check_ledger(batch, size)
    check_graph(batch)


@authored.unhurried
@given(authored.written)
def test_plain_text_keeps_all_but_white_space(text: str) -> None:
    (source,) = parsed(text.encode(), "a.txt", 100).sources
    kept = "".join(source.text[span.start : span.end].decode() for span in source.spans)
    assert "".join(kept.split()) == "".join(text.split())


@authored.unhurried
@given(authored.markdown)
def test_markdown_keeps_every_word(text: str) -> None:
    """What no span holds is markup: rules, fences and their language, link definitions, front matter."""
    assume(not any(mark in text for mark in ("```", "~~~", "]:", "---")))
    (source,) = parsed(text.encode(), "a.md", 900).sources
    held = bytearray(source.text)
    for span in source.spans:
        held[span.start : span.end] = b" " * (span.end - span.start)
    left = held.decode().split()
    assert not any(char.isalpha() for word in left for char in word)


@authored.unhurried
@given(authored.markdown)
def test_the_same_bytes_give_the_same_batch(text: str) -> None:
    assert parsed(text.encode(), "a.md", 900) == parsed(text.encode(), "a.md", 900)


@authored.unhurried
@given(st.lists(authored.words, min_size=1, max_size=6, unique=True), st.data())
def test_an_unchanged_paragraph_keeps_its_node_wherever_it_moves(
    paragraphs: list[str], data: st.DataObject
) -> None:
    moved = data.draw(st.permutations(paragraphs))
    before = parsed("\n\n".join(paragraphs).encode(), "a.txt", 900)
    after = parsed("\n\n".join(["new one", *moved]).encode(), "a.txt", 900)
    assert {node.node_id for node in before.nodes} <= {node.node_id for node in after.nodes}
