"""What a plan keeps of its scores, and what it says of them."""

from __future__ import annotations

from planner.trace.scoring import TRACED, terms_of, traced


def test_the_terms_of_the_best_are_kept_and_raw_scores_are_not() -> None:
    of = {f"n{i}": [i] for i in range(TRACED + 9)}
    recall = {"k": 200, "bm25": {"n0": 7}, "terms": {"names": ["cov"], "of": of}}
    kept = traced(recall)
    assert {**kept, "terms": None} == {"k": 200, "terms": None}
    assert kept["terms"]["names"] == ["cov"]
    assert list(kept["terms"]["of"]) == list(of)[:TRACED]
    assert len(of) == TRACED + 9


def test_a_recall_without_terms_is_kept_as_it_is() -> None:
    assert traced({"k": 64}) == {"k": 64}


def test_what_adds_nothing_to_a_score_is_not_said() -> None:
    terms = {"names": ["cov", "lex", "spk"], "weights": [8, 16, 0], "per": 16, "of": {"n": [128, 0, 256]}}
    assert terms_of({"terms": terms}, "n") == {"cov": {"value": 0.5, "weight": 0.5}}
    assert terms_of({"terms": terms}, "m") is None
    assert terms_of({}, "n") is None
