"""Finds a phrase in canonical text and says which spans it touches: exact bytes, or in any case."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from planner.errors import RequestError

MAX_ASKED_CHARS = 10_000
_WIDEST = 12
"""Bytes that one character of a phrase can match at most: three code points (`ﬃ`: `ffi`) of four bytes."""

Range = tuple[int, int]


def checked(what: str) -> str:
    """Return what is asked about with the newlines of canonical text. Raises RequestError."""
    if not what:
        raise RequestError("name a span, a node, a source or a phrase; got nothing", field="what")
    if len(what) > MAX_ASKED_CHARS:
        raise RequestError(
            f"what is asked about has {len(what)} characters; at most {MAX_ASKED_CHARS}", field="what"
        )
    if "\0" in what:
        raise RequestError("NUL characters are not allowed: no canonical text holds one", field="what")
    try:
        what.encode()
    except UnicodeEncodeError:
        raise RequestError(
            "lone surrogates are not allowed: no text in UTF-8 holds one", field="what"
        ) from None
    return what.replace("\r\n", "\n").replace("\r", "\n")


def exact_ranges(body: bytes, phrase: str, spans: Sequence[Range]) -> list[Range]:
    """Return the byte ranges among `spans` that overlap an occurrence of the phrase's bytes in `body`.

    An occurrence of n bytes overlaps [s, e) exactly where it lies within [s - n + 1, e + n - 1).
    """
    needle = phrase.encode()
    reach = len(needle) - 1
    return [(s, e) for s, e in spans if body.find(needle, max(0, s - reach), e + reach) >= 0]


def caseless_ranges(
    body: bytes, pattern: regex.Pattern[str], phrase: str, spans: Sequence[Range]
) -> list[Range]:
    """Return the same for an occurrence in any case (full case folding); `pattern` is the phrase's."""
    if pattern.search(body.decode("utf-8", "replace")) is None:
        return []
    reach = _WIDEST * len(phrase)
    return [span for span in spans if _touches(body, pattern, span, reach)]


def caseless(phrase: str) -> regex.Pattern[str]:
    """Return the pattern that finds a phrase in any case."""
    return regex.compile(regex.escape(phrase), regex.IGNORECASE | regex.FULLCASE | regex.VERSION1)


def _touches(body: bytes, pattern: regex.Pattern[str], span: Range, reach: int) -> bool:
    start, end = span
    before, inside, after = (
        piece.decode("utf-8", "ignore")
        for piece in (body[max(0, start - reach) : start], body[start:end], body[end : end + reach])
    )
    first, last = len(before), len(before) + len(inside)
    occurrences = pattern.finditer(before + inside + after, overlapped=True)
    return any(found.start() < last and found.end() > first for found in occurrences)
