"""Names in texts, which of them are looked for, and who shares them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.lexical.packing import Terms
from planner.lexical.terms import numbered
from planner.recall.v2.bm25 import Corpus, idf
from planner.recall.v2.names import (
    JOINING,
    PAIRS,
    TEXTS,
    Holding,
    Pair,
    held,
    joining,
    looked_for,
    names_in,
    shared,
)

CORPUS = Corpus(nodes=100, length=1_000)
TERMS = st.integers(0, 40)
NAMES = st.tuples(TERMS, TERMS)


def of(text: str) -> Terms:
    return np.array(numbered(text), dtype=np.int64)


def name(text: str) -> Pair:
    first, second = (term & ~7 for term in numbered(text))
    return first, second


def test_a_name_is_two_words_with_capitals_that_nothing_parts() -> None:
    found = names_in(of("Ada Lovelace met the Count, Jakob Brandt of Oslo. The King and Queen Anne"))
    assert found == {name("Ada Lovelace"), name("Jakob Brandt"), name("Queen Anne")}
    assert names_in(of("")) == names_in(of("Ada")) == set()


@given(st.lists(st.sets(NAMES, max_size=60), max_size=5), st.sets(TERMS), st.data())
def test_what_is_looked_for_is_bounded_and_rare(
    hits: list[set[Pair]], asked: set[int], data: st.DataObject
) -> None:
    counts = {term: data.draw(st.integers(1, 600)) for term in range(41)}
    found = looked_for(hits, asked, counts)
    rarity = [min(counts[a], counts[b]) for a, b in found]
    assert rarity == sorted(rarity) and sum(rarity) <= TEXTS and all(count > 1 for count in rarity)
    assert len(found) <= PAIRS * len(hits) and len(set(found)) == len(found)
    assert set(found) <= set().union(*hits)
    assert not any({a, b} <= asked for a, b in found)


def test_a_name_counts_where_more_than_one_text_holds_it_and_few_do() -> None:
    ada, anne, jakob = name("Ada Brandt"), name("Queen Anne"), name("Jakob Brandt")
    rows = [Holding(ada, node, of("Then Ada Brandt came.")) for node in ("a", "b")]
    rows += [Holding(anne, "a", of("Queen Anne")), Holding(anne, "c", of("Anne was Queen"))]
    rows += [Holding(jakob, f"j{i}", of("Jakob Brandt")) for i in range(4)]
    found = held(rows, CORPUS)
    assert found == {ada: (idf(2, 100), ["a", "b"])}
    assert shared({ada, anne}, found) == {"a": idf(2, 100), "b": idf(2, 100)}


def test_those_that_share_the_most_join_and_not_the_hit_itself() -> None:
    mass = {f"n{i:02}": 100 - i for i in range(30)}
    assert list(joining(mass, "n00")) == [f"n{i:02}" for i in range(1, JOINING + 1)]
