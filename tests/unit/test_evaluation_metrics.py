"""The metrics of the evaluation: examples worked out by hand, and what holds for any spans."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.evaluation import metrics
from planner.evaluation.metrics import Item
from planner.types import NO_TEXT_HASH, Candidate, SpanRef

SOURCES = ("a", "b")

offsets = st.integers(0, 60)
spans = st.builds(
    lambda source, start, length: SpanRef(source, 1, start, start + length),
    st.sampled_from(SOURCES),
    offsets,
    st.integers(1, 30),
)
items = st.builds(
    lambda source, start, length: Item(source, ((start, start + length),)),
    st.sampled_from(SOURCES),
    offsets,
    st.integers(1, 30),
)


def span(start: int, end: int, source: str = "a") -> SpanRef:
    return SpanRef(source, 1, start, end)


def candidate(start: int, end: int, *, source: str = "a", text_hash: bytes = NO_TEXT_HASH) -> Candidate:
    return Candidate(source, 1, start, end, "paragraph", "truth", 0.5, 1, text_hash)


def test_an_item_is_hit_from_half_of_its_bytes_on_whichever_spans_bring_them() -> None:
    item = Item("a", ((10, 20),))
    assert not metrics.is_hit(item, [span(0, 14)])
    assert metrics.is_hit(item, [span(0, 15)])
    assert metrics.is_hit(item, [span(10, 13), span(17, 19)])
    assert not metrics.is_hit(item, [span(10, 14), span(11, 14), span(12, 14)])  # no byte counts twice
    assert not metrics.is_hit(item, [span(0, 100, "b")])
    in_two = Item("a", ((0, 4), (10, 14)))
    assert (in_two.length, metrics.covered(in_two, [span(2, 12)])) == (8, 4)


def test_ranks_recall_and_reciprocal_rank_of_a_ranking() -> None:
    items = [Item("a", ((0, 10),)), Item("a", ((20, 40),)), Item("b", ((0, 5),))]
    ranking = [span(90, 95), span(0, 10), span(20, 25), span(25, 40)]
    found = metrics.found_at(items, ranking)
    assert found == [2, 4, None]
    assert [metrics.recall_at(found, k) for k in (1, 2, 3, 4)] == [0, 1 / 3, 1 / 3, 2 / 3]
    assert metrics.reciprocal_rank(found) == 0.5
    assert metrics.reciprocal_rank([None]) == 0.0


def test_ndcg_is_one_for_the_best_order_and_counts_what_was_never_found() -> None:
    assert metrics.ndcg_at([1], 10) == 1.0
    assert metrics.ndcg_at([2], 10) == pytest.approx(1 / math.log2(3))
    assert metrics.ndcg_at([1, 1], 10) == 1.0  # one span that holds both
    assert metrics.ndcg_at([1, 2], 10) == 1.0
    assert metrics.ndcg_at([1, None], 10) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert metrics.ndcg_at([11, None], 10) == 0.0


@given(st.lists(items, min_size=1, max_size=4), st.lists(spans, max_size=12))
def test_more_spans_never_hit_less_and_every_share_is_one(items: list[Item], ranking: list[SpanRef]) -> None:
    found = metrics.found_at(items, ranking)
    recalls = [metrics.recall_at(found, k) for k in range(len(ranking) + 1)]
    assert recalls == sorted(recalls)
    assert recalls[-1] == metrics.hits(items, ranking) / len(items)
    for k in (1, 5, 10):
        assert 0 <= metrics.ndcg_at(found, k) <= 1 + 1e-12
    for item, rank in zip(items, found, strict=True):
        assert metrics.is_hit(item, ranking) == (rank is not None)
        assert rank is None or not metrics.is_hit(item, ranking[: rank - 1])
        assert 0 <= metrics.covered(item, ranking) <= item.length


@given(st.lists(spans, max_size=12), st.sampled_from(SOURCES))
def test_covered_bytes_are_those_of_a_set(ranking: list[SpanRef], source: str) -> None:
    item = Item(source, ((5, 40),))
    bytes_of = {at for s in ranking if s.source_id == source for at in range(s.start, s.end)}
    assert metrics.covered(item, ranking) == len(bytes_of & set(range(5, 40)))


def test_redundant_bytes_are_overlaps_and_repeated_texts() -> None:
    assert metrics.redundant_share([]) == 0.0
    assert metrics.redundant_share([candidate(0, 10), candidate(10, 20)]) == 0.0
    assert metrics.redundant_share([candidate(0, 10), candidate(5, 15)]) == pytest.approx(0.25)
    same = bytes([1]) * 32
    twice = [candidate(0, 10, text_hash=same), candidate(0, 10, source="b", text_hash=same)]
    assert metrics.redundant_share(twice) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("text", "answers", "holds"),
    [
        ("He was born on 7 May, 2023.", ["7 May 2023"], True),
        ("ＰＡＲＩＳ is large", ["Paris"], True),  # full-width letters
        ("the STRASSE ends", ["straße"], True),
        ("Nobody knows it", ["no"], False),  # within a word it is another word
        ("It is, well: no!", ["no"], True),
        ("in 12015 years", ["2015"], False),
        ("a  line\nbroken in two", ["line broken"], True),
        ("这部作品是由光荣和ω-force开发的。", ["光荣和ω-force"], True),
        ("毎朝五時と午後四時に", ["午後四時"], True),
        ("乐队Rush的鼓手", ["rush"], True),
        ("含水量应为 百分之十五", ["百分之十五"], True),
        ("of the two, a hundred and twenty", ["120", "a hundred and twenty"], True),
        ("it cost $5", ["$5"], True),
        ("anything", [], None),
        ("anything", ["?!"], None),  # nothing is left to look for
    ],
)
def test_an_answer_is_found_in_whole_words_whatever_their_form(
    text: str, answers: list[str], holds: bool | None
) -> None:
    assert metrics.holds_answer(text, answers) is holds


@given(st.text(max_size=40), st.text(max_size=40))
def test_normalising_is_idempotent_and_a_text_holds_itself(text: str, around: str) -> None:
    folded = metrics.normalised(text)
    assert metrics.normalised(folded) == folded
    assert metrics.holds_answer(f"{around}\n{text}\n{around}", [text]) in (True, None)


@given(st.lists(st.floats(0, 1_000), min_size=1, max_size=50))
def test_percentiles_are_numpys(values: list[float]) -> None:
    cuts = metrics.percentiles(values)
    assert cuts == {f"p{q}": round(float(np.percentile(values, q)), 3) for q in (50, 95, 99)}
    assert metrics.mean(values) == pytest.approx(np.mean(values))
    assert metrics.mean([]) == 0.0
