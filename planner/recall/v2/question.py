"""The question as terms: which of them find something, and which stand next to one another. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.lexical.packing import numbers, sequence
from planner.lexical.terms import APART, STOP
from planner.recall.v2.bm25 import Ints


@dataclass(frozen=True)
class Question:
    """The terms of a question that the scope knows, in their order, each with its IDF in 1/256.

    `pairs` are those that stand next to one another in it, as positions in `terms`. `words` are all its
    terms, words of grammar too, by which the names of speakers are known.
    """

    terms: Ints
    idf: Ints
    pairs: tuple[tuple[int, int], ...]
    words: frozenset[int]

    @property
    def total(self) -> int:
        """The IDF of all its terms together, 1 where there is none."""
        return int(self.idf.sum()) or 1

    @property
    def rarest(self) -> int:
        """The position of the term in the fewest texts, the first of them."""
        return int(np.argmax(self.idf))


def spoken(texts: Sequence[str]) -> list[Ints]:
    """Return the terms of each formulation, with their flags."""
    return [sequence(text) for text in texts]


def asked(formulations: Sequence[Ints], idf: Mapping[int, int]) -> Question:
    """Return the question that these formulations are; `idf` has the terms that the scope knows."""
    places: dict[int, int] = {}
    pairs: dict[tuple[int, int], None] = {}
    for flagged in formulations:
        bare, stop = numbers(flagged).tolist(), (flagged & STOP != 0).tolist()
        apart = (flagged & APART != 0).tolist()
        for i, term in enumerate(bare):
            if stop[i] or term not in idf:
                continue
            places.setdefault(term, len(places))
            if i and not stop[i - 1] and not apart[i] and bare[i - 1] in idf:
                pairs[places[bare[i - 1]], places[term]] = None
    words = frozenset(int(term) for flagged in formulations for term in numbers(flagged))
    terms = np.array(list(places), dtype=np.int64)
    return Question(terms, np.array([idf[t] for t in places], dtype=np.int64), tuple(pairs), words)
