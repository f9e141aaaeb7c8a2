"""Analysis: the terms of a text, the same for what is stored and for what is asked.

Compatibility forms are folded (NFKC), then case and accents. Latin words are stemmed (Snowball, English),
code identifiers split where their case changes, scripts without spaces cut into overlapping bigrams.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import regex
from blake3 import blake3
from snowballstemmer.english_stemmer import EnglishStemmer

ANALYSIS = "terms/1"
"""The version of this analysis: an index that was made by another has other terms."""

CAPITAL, APART, STOP = 1, 2, 4
"""The low bits of a term in a packed sequence: how it stands there."""

FLAGS = CAPITAL | APART | STOP


class Term(NamedTuple):
    """One term of a text, in its place.

    `stop` marks words of grammar, which find nothing; `capital` one that is written with a capital or a
    digit, as names are; `apart` one that something else than a space separates from the term before it.
    """

    text: str
    stop: bool
    capital: bool
    apart: bool


_GRAMMAR = """
a about after all also am an and any are as at be because been before being between both but by can
could did do does doing done for from had has have having he her here hers him his how i if in into
is it its itself me more most my no nor not of off on once only or other our out over own same she
should so some such than that the their them then there these they this those through to too under
until up very was we were what when where which while who whom whose why will with would you your d
ll m re s t ve
"""
STOP_WORDS = frozenset(_GRAMMAR.split())

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}々〆ー"
_SPACED = rf"(?:[[\p{{L}}\p{{N}}]--[{_UNSPACED}]]\p{{M}}*)"
_WORD = regex.compile(rf"([{_UNSPACED}]+|{_SPACED}+(?:['’]{_SPACED}+)*)", regex.VERSION1)
_RUN = regex.compile(rf"[{_UNSPACED}]", regex.VERSION1)

# The same words where no character has marks or is of a script without spaces, in a quarter of the time.
_PLAIN = re.compile(r"[\x00-\u02ff\u2000-\u206f]*")
_PLAIN_WORD = re.compile(r"([^\W_]+(?:['’][^\W_]+)*)")

_KNOWN_WORDS, _KNOWN_CHARS = 1 << 17, 48
"""How many words are kept, up to what length: longer ones are hardly words, and do not come again."""

_known: dict[str, tuple[int, ...]] = {}
"""The numbers of words: a dictionary is asked in half the time that an lru_cache takes."""

_GENITIVE = regex.compile(r"['’]s$")
_APOSTROPHE = regex.compile(r"['’]")
_CAMEL = regex.compile(r"(?<=\p{Ll}|\p{N})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})")
_ACCENTS = regex.compile(r"[\u0300-\u036f]")


def analyse(text: str) -> list[Term]:
    """Return the terms of `text` in their order, repeated as they are."""
    found: list[Term] = []
    for gap, word in _words(text):
        apart = bool(gap.strip())
        for term in _terms(word):
            found.append(term._replace(apart=apart) if apart else term)
            apart = False
    return found


def numbered(text: str) -> list[int]:
    """Return the same as numbers: of each term its id, with its flags in the low bits."""
    found: list[int] = []
    for gap, word in _words(text):
        numbers = _known.get(word)
        if numbers is None:
            numbers = _numbers(word)
        if gap == " " or not gap.strip():
            found += numbers
        elif numbers:
            found.append(numbers[0] | APART)
            found += numbers[1:]
    return found


@lru_cache(maxsize=1 << 18)
def term_id(term: str) -> int:
    """Return the number of a term: 8 bytes of BLAKE3 as a signed integer, its 3 low bits zero."""
    digest = blake3(term.encode("utf-8", "surrogatepass")).digest(length=8)
    return int.from_bytes(digest, "little", signed=True) & ~FLAGS


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Return the words of a text, each with what stands between it and the one before."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    parts = (_PLAIN_WORD if text.isascii() or _PLAIN.fullmatch(text) else _WORD).split(text)
    return zip(parts[::2], parts[1::2], strict=False)


def _terms(word: str) -> Iterator[Term]:
    if not _RUN.match(word):
        return _parts(word)
    return (Term(pair, False, False, False) for pair in _bigrams(word))


def _numbers(word: str) -> tuple[int, ...]:
    if _RUN.match(word):
        return tuple(map(term_id, _bigrams(word)))
    numbers = tuple(term_id(t.text) | CAPITAL * t.capital | STOP * t.stop for t in _parts(word))
    if len(word) <= _KNOWN_CHARS:
        if len(_known) >= _KNOWN_WORDS:
            _known.clear()
        _known[word] = numbers
    return numbers


def _bigrams(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(max(1, len(run) - 1))]


def _parts(word: str) -> Iterator[Term]:
    for piece in _APOSTROPHE.split(_GENITIVE.sub("", word)):
        mixed = not (piece.isupper() or piece[1:].islower())
        for part in _CAMEL.split(piece) if mixed else (piece,):
            folded = _folded(part)
            if folded:
                yield Term(_stem(folded), folded in STOP_WORDS, part[0].isupper() or part[0].isdigit(), False)


def _folded(text: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", bare)


@lru_cache(maxsize=1 << 17)
def _stem(word: str) -> str:
    # A stemmer holds the word that it works on: threads cannot share one, and to make one costs little.
    return str(EnglishStemmer().stemWord(word)) if word.isascii() and word.isalpha() else word
