"""The texts in play as arrays: how often terms are in each, and which stand next to one another. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.lexical.packing import MAX_FREQUENCY, Terms, frequencies, numbers, unpack
from planner.lexical.terms import STOP
from planner.recall.v2.bm25 import Ints

BITS = 16
"""So many bits of a term tell nearly all others from those that are asked for."""


class Text(NamedTuple):
    """A node's terms and those of what it stands in, packed; `length` counts both."""

    length: int
    terms: bytes
    context: bytes


NO_TEXT = Text(0, b"", b"")


class Place(NamedTuple):
    """Where a node stands: in which source, under which title, said by whom, between which nodes."""

    source_id: str | None
    title: str | None
    speaker: str | None
    before: str | None
    after: str | None


class Counts(NamedTuple):
    """How often each term of the question is in each of some texts, shape (n, m), and their lengths."""

    of: Ints
    lengths: Ints


@dataclass(frozen=True)
class Texts:
    """The texts of some nodes in one order; words of grammar find nothing in them."""

    nodes: Sequence[str]
    of: Sequence[Text]

    @cached_property
    def at(self) -> Mapping[str, int]:
        """The position of each node."""
        return {node: i for i, node in enumerate(self.nodes)}

    @cached_property
    def lengths(self) -> Ints:
        """The number of terms of each."""
        return np.array([text.length for text in self.of], dtype=np.int64)

    @cached_property
    def _ends(self) -> Ints:
        return np.cumsum(self.lengths)

    @cached_property
    def _whole(self) -> Terms:
        return unpack(b"".join([part for text in self.of for part in (text.terms, text.context)]))

    @cached_property
    def _finding(self) -> tuple[Terms, Ints]:
        """The terms that find something, and which text each is of."""
        finds = self._whole & STOP == 0
        return numbers(self._whole[finds]), np.repeat(np.arange(len(self.of)), self.lengths)[finds]

    def counts(self, terms: Ints) -> Ints:
        """Return how often each of these terms, none twice, is in each text, shape (n, m)."""
        shape = (len(self.of), len(terms))
        if not len(terms):
            return np.zeros(shape, dtype=np.int64)
        term, place = self._finding
        order = np.argsort(terms)
        marked = np.zeros(1 << BITS, dtype=np.bool_)
        marked[_bits(terms)] = True
        maybe = np.flatnonzero(marked[_bits(term)])
        column = order[np.minimum(np.searchsorted(terms, term[maybe], sorter=order), len(terms) - 1)]
        found = terms[column] == term[maybe]
        cells = place[maybe[found]] * len(terms) + column[found]
        counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        return np.minimum(counts, MAX_FREQUENCY)

    def frequencies_of(self, place: int) -> tuple[Ints, Ints]:
        """Return the terms of one text, each once, and how often they are there."""
        end = int(self._ends[place])
        term, _, count = frequencies([self._whole[end - self.of[place].length : end]])
        return term, count

    def own_terms_of(self, place: int) -> Terms:
        """Return the terms of one text with their flags, without what it stands in."""
        return unpack(self.of[place].terms)

    def with_pair(self, first: int, second: int) -> npt.NDArray[np.bool_]:
        """Say of each text, without what it stands in, whether it has one term right before the other."""
        bare = self._bare
        hits = np.flatnonzero((bare[:-1] == first) & (bare[1:] == second))
        places = np.searchsorted(self._ends, hits, side="right")
        found = np.zeros(len(self.of), dtype=np.bool_)
        found[places[hits + 1 < self._own_ends[places]]] = True
        return found

    @cached_property
    def _bare(self) -> Terms:
        return numbers(self._whole)

    @cached_property
    def _own_ends(self) -> Ints:
        """Where the terms of each text end, and those of what it stands in begin."""
        return self._ends - np.array([len(text.context) // 8 for text in self.of], dtype=np.int64)


def _bits(terms: Terms) -> Terms:
    return (terms >> 3) & ((1 << BITS) - 1)


class Asked:
    """How often the terms of the question are in all texts that were read: each is looked through once."""

    def __init__(self, terms: Ints) -> None:
        """Begin with no text."""
        self._terms = terms
        self._rows: dict[str, int] = {}
        self._read = [Counts(np.zeros((1, len(terms)), dtype=np.int64), np.zeros(1, dtype=np.int64))]

    def read(self, texts: Texts) -> None:
        """Count in further texts."""
        first = 1 + len(self._rows)
        self._rows |= {node: first + i for i, node in enumerate(texts.nodes)}
        self._read.append(Counts(texts.counts(self._terms), texts.lengths))

    def of(self, nodes: Iterable[str]) -> Counts:
        """Return the counts of nodes; of one without a text they are 0."""
        rows = [self._rows.get(node, 0) for node in nodes]
        return Counts(*(np.concatenate(parts)[rows] for parts in zip(*self._read, strict=True)))
