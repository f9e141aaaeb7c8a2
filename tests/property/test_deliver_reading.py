"""What delivery reads: every byte once, and none that it did not ask for."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from planner.deliver.text import Texts, united
from planner.types import SpanRef
from tests.memory_shelf import MemoryShelf

TEXTS = {("a", 1): bytes(range(97, 123)) * 4, ("a", 2): b"second" * 9, ("b", 1): b"other" * 9}


@st.composite
def ranges(draw: st.DrawFn) -> SpanRef:
    source, tx = draw(st.sampled_from(sorted(TEXTS)))
    start = draw(st.integers(0, 40))
    return SpanRef(source, tx, start, draw(st.integers(start, len(TEXTS[source, tx]) if start > 30 else 45)))


@given(st.lists(st.lists(ranges(), max_size=4), max_size=6))
def test_every_byte_is_read_once_and_slices_are_those_of_the_text(batches: list[list[SpanRef]]) -> None:
    shelf = MemoryShelf(texts=dict(TEXTS))
    texts = Texts(shelf)
    for batch in batches:
        texts.load(batch)
        for ref in batch:
            if ref.start < ref.end:
                assert texts.slice(ref) == TEXTS[ref[:2]][ref.start : ref.end]
    assert len(shelf.reads) <= len(batches)
    read = [(ref[:2], at) for reads in shelf.reads for ref in reads for at in range(ref.start, ref.end)]
    wanted = {(ref[:2], at) for batch in batches for ref in batch for at in range(ref.start, ref.end)}
    assert len(read) == len(set(read))
    assert set(read) == wanted


@given(st.lists(ranges()))
def test_united_ranges_hold_the_same_bytes_and_do_not_touch(refs: list[SpanRef]) -> None:
    joined = united(refs)
    assert {(ref[:2], at) for ref in refs for at in range(*ref[2:])} == {
        (ref[:2], at) for ref in joined for at in range(*ref[2:])
    }
    for before, after in pairwise(joined):
        assert before[:2] != after[:2] or before.end < after.start


def test_a_version_that_is_gone_is_asked_for_once() -> None:
    shelf = MemoryShelf()
    texts = Texts(shelf)
    for _ in range(2):
        assert texts.slice(SpanRef("a", 1, 0, 5)) is None
    assert texts.is_gone(SpanRef("a", 1, 9, 9))
    assert len(shelf.reads) == 1
