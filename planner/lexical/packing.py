"""Packed sequences: 8 bytes a term, little-endian, its number with the flags of `planner.lexical.terms`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from planner.lexical.terms import APART, FLAGS, STOP, numbered

Terms = npt.NDArray[np.int64]
"""A sequence of terms, shape (n,): numbers with flags, or without."""

MAX_FREQUENCY = 255


def pack(terms: Terms) -> bytes:
    """Return a sequence as the store holds it."""
    return terms.astype("<i8", copy=False).tobytes()


def unpack(data: bytes) -> Terms:
    """Return a sequence as the store holds it, as an array that cannot be written to."""
    return np.frombuffer(data, dtype="<i8").astype(np.int64, copy=False)


def joined(parts: Iterable[Sequence[int]]) -> Terms:
    """Return sequences one after another, each apart from the one before."""
    found: list[int] = []
    for part in parts:
        if part:
            found += (part[0] | APART, *part[1:]) if found else part
    return np.array(found, dtype=np.int64)


def sequence(text: str) -> Terms:
    """Return the terms of a text, each with its flags."""
    return np.array(numbered(text), dtype=np.int64)


def content(text: str) -> set[int]:
    """Return the terms of a text that find something."""
    return {term & ~FLAGS for term in numbered(text) if not term & STOP}


def numbers(terms: Terms) -> Terms:
    """Return the numbers alone."""
    return terms & ~FLAGS


def finding(terms: Terms) -> Terms:
    """Return the numbers of the terms that find something: without the words of grammar."""
    return numbers(terms[terms & STOP == 0])


def frequencies(sequences: Sequence[Terms]) -> tuple[Terms, Terms, Terms]:
    """Return each term of each sequence once: its number, which sequence, how often there.

    Three arrays of one length, by number, then sequence; words of grammar are left out, and what is there
    more than MAX_FREQUENCY times counts that often.
    """
    whole = np.concatenate(sequences) if sequences else np.zeros(0, dtype=np.int64)
    place = np.repeat(np.arange(len(sequences), dtype=np.int64), [len(terms) for terms in sequences])
    finds = whole & STOP == 0
    term, place = whole[finds] & ~FLAGS, place[finds]
    order = np.lexsort((place, term))
    term, place = term[order], place[order]
    starts = np.flatnonzero(np.diff(term, prepend=~term[:1]) | np.diff(place, prepend=-1))
    counts = np.diff(starts, append=len(term))
    return term[starts], place[starts], np.minimum(counts, MAX_FREQUENCY)
