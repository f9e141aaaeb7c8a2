"""Counting a bundle: from the figures of its parts where they add up, else its whole text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, NamedTuple

from planner.ports import LedgerCounter, TokenCounter
from planner.tokens import ByteCounter, ScriptCounter, count_text, ledger_counts

MOST_BYTES_A_TOKEN: Final = 256
"""For a counter of which nothing is known: a text of more bytes for each token of the budget is not tried."""


class Figures(NamedTuple):
    """What the span ledger would keep of a text; the figures of texts add up to those of their join."""

    ascii_bytes: int = 0
    non_ascii_chars: int = 0
    byte_length: int = 0

    @classmethod
    def of(cls, text: str) -> Figures:
        """Return the figures of a text."""
        data = text.encode()
        return cls(*ledger_counts(data), len(data))

    def plus(self, others: Iterable[Figures]) -> Figures:
        """Return the figures with others added."""
        ascii_bytes, non_ascii_chars, byte_length = self
        for other in others:
            ascii_bytes += other.ascii_bytes
            non_ascii_chars += other.non_ascii_chars
            byte_length += other.byte_length
        return Figures(ascii_bytes, non_ascii_chars, byte_length)

    def less(self, others: Iterable[Figures]) -> Figures:
        """Return the figures with others taken away."""
        return self.plus(Figures(-a, -b, -c) for a, b, c in others)


NOTHING: Final = Figures()


class Measure:
    """Counts with one counter; a text or its figures, whichever it needs."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._ledger = counter.count_ledger if isinstance(counter, LedgerCounter) else None
        self._bytes_a_token = {ByteCounter: 1, ScriptCounter: 4}.get(type(counter))
        self.count = cache(lambda text: count_text(counter, text))
        """The count of a text that comes again and again, as a body does."""

    def tokens(self, figures: Figures, text: Callable[[], str]) -> int:
        """Return the count of a text of these figures; `text` is called where they do not tell."""
        return count_text(self.counter, text()) if self._ledger is None else self._ledger(*figures)

    def least(self, size: int, beside: Figures = NOTHING) -> int:
        """Return a number of tokens that no text is below that has so many bytes beside these figures.

        A token of the script counter is one character, of four bytes at most, or 3.6 of ASCII; rounding up
        the two parts may count one token too many.
        """
        if self._ledger is None or self._bytes_a_token is None:
            return size // MOST_BYTES_A_TOKEN
        return max(self._ledger(*beside) - 1, 0) + size // self._bytes_a_token

    def most_bytes(self, tokens: int) -> int:
        """Return how many bytes of a text are looked at to find what fits into so many tokens."""
        return (tokens + 1) * (self._bytes_a_token or MOST_BYTES_A_TOKEN)
