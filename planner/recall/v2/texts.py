"""The texts in play as arrays: how often a term is in each, and what stands beside it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.lexical.packing import Terms, frequencies, numbers
from planner.recall.v2.bm25 import Ints


@dataclass(frozen=True, slots=True)
class Text:
    """A node in play: its terms and those of what it stands in, and its place in its source."""

    node_id: str
    length: int
    terms: Terms
    context: Terms
    source_id: str | None
    title: str | None
    speaker: str | None
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Texts:
    """Texts in one order, and the counts of all their terms, words of grammar apart."""

    of: Sequence[Text]

    @cached_property
    def at(self) -> Mapping[str, int]:
        """The position of each node."""
        return {text.node_id: i for i, text in enumerate(self.of)}

    @cached_property
    def lengths(self) -> Ints:
        """The number of terms of each."""
        return np.array([text.length for text in self.of], dtype=np.int64)

    @cached_property
    def _counts(self) -> tuple[Ints, Ints, Ints]:
        return frequencies([np.concatenate((text.terms, text.context)) for text in self.of])

    def counts(self, terms: Ints) -> Ints:
        """Return how often each of these terms is in each text, shape (n, m)."""
        found = np.zeros((len(self.of), len(terms)), dtype=np.int64)
        term, place, count = self._counts
        starts, ends = np.searchsorted(term, terms), np.searchsorted(term, terms, side="right")
        for column, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            found[place[start:end], column] = count[start:end]
        return found

    def terms_of(self, place: int) -> Ints:
        """Return the terms of one text, each once."""
        term, places, _ = self._counts
        found: Ints = term[places == place]
        return found

    def beside(self, place: str) -> Ints:
        """Return the positions of what stands `before` or `after` each, n where it is not in play."""
        out = [self.at.get(getattr(text, place) or "", len(self.of)) for text in self.of]
        return np.array(out, dtype=np.int64)

    def with_pair(self, first: int, second: int) -> npt.NDArray[np.bool_]:
        """Say of each text whether it has one term right before the other."""
        whole, ends = self._running
        hits = np.flatnonzero((whole[:-1] == first) & (whole[1:] == second))
        places = np.searchsorted(ends, hits, side="right")
        inside = hits + 1 < ends[places]
        found = np.zeros(len(self.of), dtype=np.bool_)
        found[places[inside]] = True
        return found

    @cached_property
    def _running(self) -> tuple[Ints, Ints]:
        sequences = [text.terms for text in self.of] or [np.zeros(0, dtype=np.int64)]
        return numbers(np.concatenate(sequences)), np.cumsum([len(terms) for terms in sequences])
