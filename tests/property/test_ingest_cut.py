"""Cutting loses nothing, fits the window and parts no grapheme without need."""

from __future__ import annotations

from itertools import accumulate

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from planner.ingest.cut import pieces
from tests import ingest_strategies as authored

KINDS = st.sampled_from(["paragraph", "code", "message"])
LONG = st.lists(authored.texts, min_size=1, max_size=6).map("".join)


@authored.unhurried
@given(LONG, KINDS, st.integers(100, 300))
@example(". " + "\u0301" * 400, "paragraph", 100)
@example("🇯🇵" * 300, "paragraph", 101)
@example("。 \u0301" * 100, "paragraph", 100)
def test_pieces_join_to_the_text_and_fit(text: str, kind: str, size: int) -> None:
    cut = list(pieces(text, kind, size))
    assert "".join(cut) == text
    assert all(0 < len(piece) <= size for piece in cut)


@authored.unhurried
@given(LONG.map(lambda text: text.replace("\r", "")), KINDS, st.integers(100, 300))
def test_no_grapheme_that_fits_is_parted(text: str, kind: str, size: int) -> None:
    clusters = regex.findall(r"\X", text)
    boundaries = set(accumulate(map(len, clusters), initial=0))
    if max(map(len, clusters), default=0) > size // 4:
        return
    ends = set(accumulate(map(len, pieces(text, kind, size)), initial=0))
    assert ends <= boundaries


@authored.unhurried
@given(LONG, KINDS)
def test_text_that_fits_is_one_piece(text: str, kind: str) -> None:
    assert list(pieces(text, kind, max(1, len(text)))) == ([text] if text else [])


@pytest.mark.parametrize(
    "unit",
    ["word ", "w", ". ", ".", "漢字。", "e\u0301", "\u0301", " ", "\n", "x = 1\n", "a\n\n", ".'", "👩\u200d"],
)
@pytest.mark.parametrize("kind", ["paragraph", "code"])
def test_every_piece_but_the_last_fills_a_quarter_of_the_window(unit: str, kind: str) -> None:
    """So that the number of windows, each looked at a bounded number of times, is linear in the text."""
    text = unit * (20_000 // len(unit))
    cut = list(pieces(text, kind, 900))
    assert "".join(cut) == text
    assert all(225 <= len(piece) <= 900 for piece in cut[:-1])
