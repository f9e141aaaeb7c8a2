"""Names: two words with capitals that stand next to each other. Which texts share one with a hit. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np

from planner.lexical.packing import Terms, numbers
from planner.lexical.terms import APART, CAPITAL, STOP
from planner.recall.v2.bm25 import Corpus, idf

PAIRS, TEXTS = 16, 1_024
"""The rarest names of a hit that are looked for; and as long as so many texts hold the rarer words of all."""

JOINING = 16
"""How many texts that share a name with a hit join, those that share the most."""

Pair = tuple[int, int]


class Holding(NamedTuple):
    """A node that holds both words of a pair, and its terms."""

    pair: Pair
    node_id: str
    terms: Terms


def names_in(terms: Terms) -> set[Pair]:
    """Return the names in a text, given as its terms with their flags."""
    begins = terms[:-1] & (CAPITAL | STOP) == CAPITAL
    goes_on = terms[1:] & (CAPITAL | STOP | APART) == CAPITAL
    at, bare = np.flatnonzero(begins & goes_on), numbers(terms)
    return set(zip(bare[at].tolist(), bare[at + 1].tolist(), strict=True))


def looked_for(
    hits: Iterable[Collection[Pair]], asked: AbstractSet[int], counts: Mapping[int, int]
) -> list[Pair]:
    """Return the names of hits that other texts may share, the rarest first; not what the question holds."""
    chosen: set[tuple[int, Pair]] = set()
    for names in hits:
        rarity = ((min(counts[a], counts[b]), (a, b)) for a, b in names if not {a, b} <= asked)
        chosen |= set(sorted(found for found in rarity if found[0] > 1)[:PAIRS])
    ranked, texts = sorted(chosen), 0
    for place, (count, _) in enumerate(ranked):
        texts += count
        if texts > TEXTS:
            return [pair for _, pair in ranked[:place]]
    return [pair for _, pair in ranked]


def held(holdings: Iterable[Holding], corpus: Corpus) -> dict[Pair, tuple[int, list[str]]]:
    """Return the IDF of each name that more than one text holds and few do, and the nodes of these texts."""
    nodes: dict[Pair, list[str]] = {}
    for pair, node_id, terms in holdings:
        if pair in names_in(terms):
            nodes.setdefault(pair, []).append(node_id)
    limit = max(3, corpus.nodes // 30)
    return {
        pair: (idf(len(found), corpus.nodes), found)
        for pair, found in nodes.items()
        if 1 < len(found) <= limit
    }


def shared(names: Iterable[Pair], found: Mapping[Pair, tuple[int, Sequence[str]]]) -> dict[str, int]:
    """Return the IDF of the names of one hit that each node shares."""
    mass: dict[str, int] = {}
    for pair in names:
        weight, nodes = found.get(pair, (0, ()))
        for node_id in nodes:
            mass[node_id] = mass.get(node_id, 0) + weight
    return mass


def joining(mass: Mapping[str, int], hit: str) -> Iterator[str]:
    """Yield the nodes that share the most with a hit."""
    ranked = sorted((-weight, node_id) for node_id, weight in mass.items() if node_id != hit)
    return (node_id for _, node_id in ranked[:JOINING])
