"""The lines of a text and their byte offsets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate


class Lines:
    """The `\\n`-separated lines of a text; columns are code points, offsets are UTF-8 bytes."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts = list(accumulate((len(line.encode()) + 1 for line in self._lines), initial=0))

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def __getitem__(self, line: int) -> str:
        """Return a line without its newline."""
        return self._lines[line]

    def offset(self, line: int, column: int = 0) -> int:
        """Return the byte offset of a column of a line."""
        return self._starts[line] + len(self._lines[line][:column].encode())

    def range(self, first: int, after: int, column: int = 0) -> tuple[int, int]:
        """Return the bytes from a column of line `first` to the end of the line before `after`."""
        return self.offset(first, column), self._starts[after] - 1

    def groups(self, first: int, after: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of lines between blank lines within `first … after`."""
        begun: int | None = None
        for line in range(first, after):
            if self._lines[line].strip():
                begun = line if begun is None else begun
            elif begun is not None:
                yield begun, line
                begun = None
        if begun is not None:
            yield begun, after
