"""Titles, and where texts mention them."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import regex

from planner.lexical.packing import Terms, numbers
from planner.lexical.terms import APART, CAPITAL, STOP, Term, analyse, term_id

MAX_TITLE_TERMS = 32
"""Longer titles make none: nobody writes them out."""

_PARENTHESIS = regex.compile(r"\s*\([^()]*\)\s*$")
_CASED = regex.compile(r"[\p{Latin}\p{Greek}\p{Cyrillic}]")

K = TypeVar("K", bound=Hashable)


class Title(NamedTuple):
    """One form of a title: 0 as it stands, 1 without its trailing parenthesis.

    In `terms` the flags say what a mention may look like: CAPITAL that this term has to be written with one,
    APART that it may be apart from the one before.
    """

    form: int
    terms: Terms

    @property
    def first_term(self) -> int:
        """The number of its first term that finds something."""
        return int(numbers(self.terms)[lead(self.terms)])


def title_forms(title: str | None) -> list[Title]:
    """Return the forms of a source's title by which texts mention it; none where it says too little.

    Too little: words of grammar only, numbers only, a single character. Where it has a single word that finds
    something, in a script with capitals, a mention is written with one.
    """
    whole = unicodedata.normalize("NFKC", title or "")
    bare = _PARENTHESIS.sub("", whole)
    texts = [whole] if bare == whole else [whole, bare]
    forms = [(form, _form(text)) for form, text in enumerate(texts)]
    return [Title(form, terms) for form, terms in forms if terms is not None]


def lead(terms: Terms) -> int:
    """Return the place of the first term that finds something."""
    return int(np.argmax(terms & STOP == 0))


class Mentions(Generic[K]):
    """Finds titles in texts; each title has a key of the caller's."""

    def __init__(self, titles: Iterable[tuple[K, Terms]]) -> None:
        """Take titles as `Title.terms`."""
        self._shapes: dict[int, set[tuple[int, int]]] = defaultdict(set)
        self._titles: dict[bytes, list[tuple[K, Terms]]] = defaultdict(list)
        for key, terms in titles:
            bare, before = numbers(terms), lead(terms)
            self._shapes[int(bare[before])].add((before, len(terms)))
            self._titles[bare.tobytes()].append((key, terms))

    def found_in(self, texts: Sequence[Terms]) -> Iterator[tuple[int, K]]:
        """Yield which text mentions which title, as the place of the text and the key; each pair once."""
        if not self._titles or not texts:
            return
        whole = np.concatenate(texts)
        bare = numbers(whole)
        firsts = np.fromiter(self._shapes, dtype=np.int64, count=len(self._shapes))
        ends = np.cumsum([len(text) for text in texts])
        hits = np.flatnonzero(np.isin(bare, firsts) & (whole & STOP == 0))
        places = np.searchsorted(ends, hits, side="right")
        seen: set[tuple[int, K]] = set()
        for hit, place in zip(hits.tolist(), places.tolist(), strict=True):
            end = int(ends[place])
            begin = end - len(texts[place])
            for before, length in self._shapes[int(bare[hit])]:
                start = hit - before
                if start < begin or start + length > end:
                    continue
                window = slice(start, start + length)
                for key, terms in self._titles.get(bare[window].tobytes(), ()):
                    if (place, key) not in seen and _is_written(whole[window], terms):
                        seen.add((place, key))
                        yield place, key


def _form(text: str) -> Terms | None:
    terms = analyse(text)
    content = [term for term in terms if not term.stop]
    if len(terms) > MAX_TITLE_TERMS or not any(_says(term) for term in content):
        return None
    if len(content) == 1 and len(content[0].text) == 1:
        return None
    flags = np.array([APART * term.apart | STOP * term.stop for term in terms], dtype=np.int64)
    flags[0] |= APART
    if len(content) == 1 and _CASED.match(content[0].text):
        flags[terms.index(content[0])] |= CAPITAL
    return np.array([term_id(term.text) for term in terms], dtype=np.int64) | flags


def _says(term: Term) -> bool:
    return not term.text.isdecimal()


def _is_written(text: Terms, title: Terms) -> bool:
    missing, further = title & ~text & CAPITAL, text & ~title & APART
    return not (missing | further).any()
