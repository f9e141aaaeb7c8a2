"""The terms of the score on texts small enough to work them out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.lexical.terms import numbered
from planner.recall.v2.bm25 import Corpus, idf
from planner.recall.v2.features import Hit, Links, Scorer, feedback
from planner.recall.v2.question import Question, asked, spoken
from planner.recall.v2.texts import Text, Texts

CORPUS = Corpus(nodes=100, length=1_000)
COUNTS = {"zephyr": 1, "valve": 9, "noon": 3, "lamp": 2}


def term(word: str) -> int:
    return numbered(word)[0] & ~7


KNOWN = {term(word): count for word, count in COUNTS.items()}


def text(node_id: str, said: str, **fields: Any) -> Text:
    terms = np.array(numbered(said), dtype=np.int64)
    about = {"source_id": "s", "title": None, "speaker": None, "before": None, "after": None, **fields}
    return Text(node_id, len(terms), terms, np.zeros(0, np.int64), **about)


def question(*formulations: str) -> Question:
    return asked(spoken(formulations), {t: idf(count, CORPUS.nodes) for t, count in KNOWN.items()})


def scorer(texts: list[Text], words: str, **fields: Any) -> Scorer:
    given = {"cos": {}, "lexical_span": (0, 0), "title_share": {}, "source_nodes": {"s": "S"}, **fields}
    return Scorer(question(words), CORPUS, Texts(texts), **given)


def test_a_question_has_each_known_term_once_and_the_pairs_that_nothing_parts() -> None:
    found = question("The zephyr valve, noon and the zephyr valve", "unknown lamp")
    assert found.terms.tolist() == [term(w) for w in ("zephyr", "valve", "noon", "lamp")]
    assert found.pairs == ((0, 1),)
    assert found.rarest == 0


def test_coverage_is_the_share_of_idf_and_neighbours_count_for_what_is_new() -> None:
    texts = [text("a", "A zephyr.", after="b"), text("b", "The valve.", before="a")]
    found = scorer(texts, "zephyr valve").base()
    share = idf(1, 100) / (idf(1, 100) + idf(9, 100))
    assert found["cov"].tolist() == [round(256 * share), round(256 * (1 - share))]
    assert found["nbnew"].tolist() == found["cov"].tolist()[::-1]
    assert found["rarest"].tolist() == [256, 0]


def test_a_pair_counts_inside_one_text_only_and_in_the_title() -> None:
    texts = [
        text("a", "The zephyr"),
        text("b", "valve."),
        text("c", "zephyr valve"),
        text("d", "-", title="T"),
    ]
    titled = text("e", "Aside.", title="Zephyr valve")
    found = scorer([*texts, titled], "zephyr valve", title_share={"Zephyr valve": 1.0}).base()
    assert found["pair"].tolist() == [0, 0, 256, 0, 256]
    assert found["titlefull"].tolist() == [0, 0, 0, 0, 256]


def test_the_text_before_hands_on_half_the_sum_of_both_legs() -> None:
    texts = [text("a", "One.", after="b"), text("b", "Two.", before="a")]
    found = scorer(texts, "zephyr", cos={"a": 0.9, "x": 0.1}).base()
    assert found["cos"].tolist() == [256, 0]
    assert found["prev"].tolist() == [0, 128]


def test_what_a_hit_names_counts_the_less_the_more_texts_name_it() -> None:
    texts = [text("hit", "Lamp at noon."), text("named", "Zephyr.", source_id="t"), text("linked", "Valve.")]
    found = scorer(texts, "zephyr lamp", source_nodes={"s": "S", "t": "T"})
    hits = [Hit("hit", 0.5)]
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    links = Links(hits, {"hit": {"T": 4}}, {"hit": {"linked": 0.5}}, KNOWN, none, (0, 0))
    assert found.linked(links)["mention"].tolist() == [0, 64, 64]


def test_a_text_completes_a_hit_with_which_it_shares_a_rare_term() -> None:
    texts = [text("hit", "Lamp at noon."), text("kin", "Zephyr at noon."), text("other", "Zephyr.")]
    found = scorer(texts, "zephyr lamp")
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    links = Links([Hit("hit", 1.0)], {"hit": {}}, {"hit": {}}, KNOWN, none, (0, 0))
    joint = found.linked(links)["joint"]
    assert joint[0] == joint[2] == 0
    new = idf(1, 100) / (idf(1, 100) + idf(2, 100))
    assert joint[1] == round(256 * idf(3, 100) / (2 * idf(1, 100)) * new)


def test_feedback_leaves_out_the_question_and_puts_the_heaviest_first() -> None:
    texts = Texts([text("hit", "Zephyr lamp valve.")])
    terms, weights = feedback(texts, [Hit("hit", 1.0)], question("zephyr"), KNOWN, CORPUS, 40)
    assert terms.tolist() == [term("lamp"), term("valve")]
    assert weights[0] == 256 * idf(2, 100)


@pytest.mark.parametrize("words", ["", "the of", "unknown"])
def test_a_question_without_a_known_term_gives_nothing(words: str) -> None:
    found = scorer([text("a", "A zephyr.")], words).base()
    assert not any(values.any() for values in found.values())
