"""Cutting long text into contiguous pieces that a budget can take (store.md: spans are packable)."""

from __future__ import annotations

from collections.abc import Iterator

import regex

_WHOLE = r"(?![\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}])"
"""A cut may not part a mark from what it marks, not even from a space."""

_SENTENCE = regex.compile(r"(?:[.!?…।؟۔][\"'”’»)\]]*+\s|[。！？｡][”’」』）】〕》]*+)\s*+" + _WHOLE)
_BLANK_LINE = regex.compile(r"\n(?:[^\S\n]*+\n)++" + _WHOLE)
_LINE = regex.compile(r"\n" + _WHOLE)
_WORD = regex.compile(r"\s++" + _WHOLE)
_GRAPHEME = regex.compile(r"\X")

_PROSE = (_SENTENCE, _LINE, _WORD)
_CODE = (_BLANK_LINE, _LINE)


def pieces(text: str, kind: str, max_chars: int) -> Iterator[str]:
    """Yield `text` in contiguous pieces of at most `max_chars` code points that join to it again.

    Text that fits is one piece. Longer text is cut near every `max_chars / 2`: prose at sentence ends, else
    line ends, else grapheme boundaries, of which those after white space come first; code at blank lines,
    else line ends, else graphemes. Only a grapheme longer than a piece is cut inside. Time is linear: each
    window of `max_chars` is looked at a bounded number of times and moves on by at least a quarter.
    """
    patterns = _CODE if kind == "code" else _PROSE
    start = 0
    tail = max_chars if len(text) <= max_chars else max_chars * 3 // 4
    while len(text) - start > tail:
        end = next(
            (at for pattern in patterns if (at := _nearest(text, pattern, start, max_chars)) is not None),
            None,
        ) or _grapheme(text, start, max_chars)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _nearest(text: str, pattern: regex.Pattern[str], start: int, size: int) -> int | None:
    """Return the end of the match nearest to the aimed size, none before a quarter of the window."""
    aim, last = start + size // 2, start + size
    best: int | None = None
    # One character more than fits, so that what follows a match at the very end is seen.
    for match in pattern.finditer(text, start + size // 4, last + 1):
        end = match.end()
        if end > last:
            break
        if best is None or abs(end - aim) < abs(best - aim):
            best = end
        if end >= aim:
            break
    return best


def _grapheme(text: str, start: int, size: int) -> int:
    aim, last = start + size // 2, start + size
    if text[aim - 1 : aim + 1].isascii():
        return aim
    best: int | None = None
    for match in _GRAPHEME.finditer(text, start, last + 1):
        end = match.end()
        if end > last or (best is not None and end > aim):
            break
        best = end
    return best or aim
