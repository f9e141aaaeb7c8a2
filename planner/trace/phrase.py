"""Finds a phrase in canonical text and says which spans it touches: exact bytes, or in any case."""

from __future__ import annotations

from collections.abc import Sequence

from planner.errors import RequestError

MAX_ASKED_CHARS = 10_000
_WIDEST = 4
"""Bytes of the widest character."""

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


def caseless_ranges(body: bytes, phrase: str, spans: Sequence[Range]) -> list[Range]:
    """Return the same for an occurrence in any case, by Unicode's full case folding.

    Folding works character by character and never drops one, so that a span and its neighbourhood can be
    folded apart from the rest.
    """
    needle = phrase.casefold()
    if needle not in body.decode("utf-8", "replace").casefold():
        return []
    return [span for span in spans if _touches(body, needle, span)]


def _touches(body: bytes, needle: str, span: Range) -> bool:
    start, end = span
    reach = len(needle) - 1
    wide = _WIDEST * reach
    before, inside, after = (
        piece.decode("utf-8", "ignore").casefold()
        for piece in (body[max(0, start - wide) : start], body[start:end], body[end : end + wide])
    )
    text = before + inside + after
    first, last = len(before), len(before) + len(inside)
    return text.find(needle, max(0, first - reach), last + reach) >= 0
