"""A phrase is found where it is, whatever surrounds it: held against a search of the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import RequestError
from planner.trace.phrase import caseless_ranges, checked, exact_ranges

LETTERS = st.sampled_from(["a", "A", "b", "ß", "ﬃ", "猫", "🐈", "é", "İ", "\n"])
TEXTS = st.lists(LETTERS, min_size=1, max_size=30)
PHRASES = st.lists(LETTERS, min_size=1, max_size=4).map("".join)


def cut(letters: list[str], size: int) -> list[tuple[int, int]]:
    """Cut a text into spans of `size` letters, as byte ranges."""
    pieces = ["".join(letters[i : i + size]).encode() for i in range(0, len(letters), size)]
    ends = [sum(map(len, pieces[: i + 1])) for i in range(len(pieces))]
    return list(zip([0, *ends], ends, strict=False))


def touched(text: list[str], needle: str, spans: list[tuple[int, int]], *, fold: bool) -> list[bool]:
    """Say of each span whether an occurrence in the whole text overlaps it, letter by letter."""
    shown = [letter.casefold() if fold else letter for letter in text]
    owner = [i for i, piece in enumerate(shown) for _ in piece]
    whole = "".join(shown)
    starts = [at for at in range(len(whole)) if whole.startswith(needle, at)]
    letters = {i for at in starts for i in owner[at : at + len(needle)]}
    offsets = [sum(len(x.encode()) for x in text[:i]) for i in range(len(text))]
    return [any(start <= offsets[i] < end for i in letters) for start, end in spans]


@given(TEXTS, PHRASES, st.integers(1, 5))
def test_exact_search_by_span_equals_search_of_the_whole_text(
    text: list[str], phrase: str, size: int
) -> None:
    body, spans = "".join(text).encode(), cut(text, size)
    found = exact_ranges(body, phrase, spans)
    assert [span in found for span in spans] == touched(text, phrase, spans, fold=False)


@given(TEXTS, PHRASES, st.integers(1, 5))
def test_caseless_search_by_span_equals_search_of_the_whole_folded_text(
    text: list[str], phrase: str, size: int
) -> None:
    body, spans = "".join(text).encode(), cut(text, size)
    found = caseless_ranges(body, phrase, spans)
    assert [span in found for span in spans] == touched(text, phrase.casefold(), spans, fold=True)


def test_newlines_are_read_as_canonical_text_has_them() -> None:
    assert checked("a\r\nb\rc\nd") == "a\nb\nc\nd"


@pytest.mark.parametrize("what", ["", "\0", "x" * 10_001, "\udfff"])
def test_what_no_canonical_text_can_hold_is_refused(what: str) -> None:
    with pytest.raises(RequestError) as refused:
        checked(what)
    assert refused.value.detail["field"] == "what"
