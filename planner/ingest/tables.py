"""The cells of a row of a Markdown table, exactly where they are (GFM, section 4.10)."""

from __future__ import annotations

import regex

MARKERS = regex.compile(r"(?:[ \t>]|[-+*](?=[ \t]|$)|\d{1,9}[.)](?=[ \t]|$))*+")
"""What the lists and quotations around a line put before its content."""

_BAR = regex.compile(r"(?<!\\)\|")


def cell_ranges(line: str) -> list[tuple[int, int]]:
    """Return the column ranges of the cells of a table's line, between its bars, white space included.

    A bar at either end belongs to no cell; an escaped one is part of its cell.
    """
    match = MARKERS.match(line)
    first = match.end() if match else 0
    bars = [bar.start() for bar in _BAR.finditer(line, first)]
    starts = [first, *(bar + 1 for bar in bars)]
    ends = [*bars, len(line)]
    if bars and bars[0] == first:
        del starts[0], ends[0]
    if bars and not line[bars[-1] :].strip("| \t"):
        del starts[-1], ends[-1]
    return list(zip(starts, ends, strict=True))
