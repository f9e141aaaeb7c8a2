"""Stored text where people see it: a stranger's controls must not steer a terminal or reorder a line."""

from __future__ import annotations

import unicodedata

UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""General categories of what is no sign: control, surrogate, line and paragraph separator."""

REORDERING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Bidirectional classes of the characters that reorder a line."""


def visible(text: str, keep: str = "") -> str:
    """Return text whose control and reordering characters are written out, but for those to `keep`."""
    return "".join(char if char in keep or is_seen(char) else written_out(char) for char in text)


def excerpt(text: str, length: int) -> str:
    """Return the beginning of a text, at most so many characters, in one line that can be shown."""
    line = visible(" ".join(text[: 4 * length].split()))
    return line if len(line) <= length and len(text) <= 4 * length else line[: length - 1] + "…"


def is_seen(char: str) -> bool:
    """Tell whether a character is shown as itself, and leaves the others where they are."""
    return unicodedata.category(char) not in UNSEEN and unicodedata.bidirectional(char) not in REORDERING


def written_out(char: str) -> str:
    """Return a character as an escape sequence."""
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
