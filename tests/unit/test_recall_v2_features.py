"""The terms of the score on texts small enough to work them out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from planner.ingest import source_node_id
from planner.lexical.packing import pack
from planner.lexical.terms import numbered
from planner.recall.v2.bm25 import Corpus, idf
from planner.recall.v2.features import Hit, Legs, Links, Scorer
from planner.recall.v2.feedback import feedback
from planner.recall.v2.question import Question, asked, spoken
from planner.recall.v2.texts import Asked, Place, Text, Texts

CORPUS = Corpus(nodes=100, length=1_000)
COUNTS = {"zephyr": 1, "valve": 9, "noon": 3, "lamp": 2}


def term(word: str) -> int:
    return numbered(word)[0] & ~7


KNOWN = {term(word): count for word, count in COUNTS.items()}


class Said(NamedTuple):
    node_id: str
    text: Text
    place: Place


def text(node_id: str, said: str, **fields: Any) -> Said:
    terms = np.array(numbered(said), dtype=np.int64)
    about = {"source_id": "s", "title": None, "speaker": None, "before": None, "after": None, **fields}
    return Said(node_id, Text(len(terms), pack(terms), b""), Place(**about))


def question(*formulations: str) -> Question:
    return asked(spoken(formulations), {t: idf(count, CORPUS.nodes) for t, count in KNOWN.items()})


def texts_of(said: Sequence[Said]) -> Texts:
    return Texts([one.node_id for one in said], [one.text for one in said])


def scorer(pool: Sequence[Said], words: str, near: Sequence[Said] = (), **fields: Any) -> Scorer:
    given = {"cos": {}, "lexical_span": (0, 0), "title_share": {}, **fields}
    asking, texts = question(words), texts_of(pool)
    counted = Asked(asking.terms)
    for read in (texts, texts_of(near)):
        counted.read(read)
    beside = [one.node_id for one in near]
    return Scorer(
        Legs(asking, CORPUS, given["cos"], given["lexical_span"]),
        texts,
        [one.place for one in pool],
        beside,
        counted.of([*texts.nodes, *beside]),
        {(one.place.source_id or "", one.place.speaker) for one in (*pool, *near) if one.place.speaker},
        given["title_share"],
    )


def test_a_question_has_each_known_term_once_and_the_pairs_that_nothing_parts() -> None:
    found = question("The zephyr valve, noon and the zephyr valve", "unknown lamp")
    assert found.terms.tolist() == [term(w) for w in ("zephyr", "valve", "noon", "lamp")]
    assert found.pairs == ((0, 1),)
    assert found.rarest == 0


def test_coverage_is_the_share_of_idf_and_neighbours_count_for_what_is_new() -> None:
    texts = [text("a", "A zephyr.", after="b"), text("b", "The valve.", before="a")]
    found = scorer(texts, "zephyr valve").base()
    beside = scorer(texts[:1], "zephyr valve", near=texts[1:]).base()
    assert [values[0] for values in beside.values()] == [values[0] for values in found.values()]
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
    found = scorer(texts, "zephyr lamp")
    hits = [Hit("hit", 0.5)]
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    links = Links(
        hits, {"hit": {source_node_id("t"): 4}}, {"hit": {"linked": 0.5}}, {"hit": {}}, KNOWN, none, (0, 0)
    )
    assert found.linked(links)["mention"].tolist() == [0, 64, 64]


def test_a_text_completes_a_hit_with_which_it_shares_a_rare_term() -> None:
    texts = [text("hit", "Lamp at noon."), text("kin", "Zephyr at noon."), text("other", "Zephyr.")]
    found = scorer(texts, "zephyr lamp")
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    links = Links([Hit("hit", 1.0)], {"hit": {}}, {"hit": {}}, {"hit": {}}, KNOWN, none, (0, 0))
    joint = found.linked(links)["joint"]
    assert joint[0] == joint[2] == 0
    new = idf(1, 100) / (idf(1, 100) + idf(2, 100))
    assert joint[1] == round(256 * idf(3, 100) / (2 * idf(1, 100)) * new)


def test_a_name_that_another_source_shares_with_a_hit_counts_by_how_rare_it_is() -> None:
    texts = [text("hit", "-"), text("same", "-"), text("other", "-", source_id="t")]
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    mass = {"hit": 200, "same": 200, "other": 200, "outside": 200}
    links = Links([Hit("hit", 0.5)], {"hit": {}}, {"hit": {}}, {"hit": mass}, KNOWN, none, (0, 0))
    found = scorer(texts, "zephyr").linked(links)["names"]
    assert found.tolist() == [0, 0, round(256 * 0.5 * 200 / idf(1, 100))]


def test_feedback_leaves_out_the_question_and_puts_the_heaviest_first() -> None:
    texts = texts_of([text("hit", "Zephyr lamp valve.")])
    terms, weights = feedback(texts, [Hit("hit", 1.0)], question("zephyr"), KNOWN, CORPUS, 40)
    assert terms.tolist() == [term("lamp"), term("valve")]
    assert weights[0] == 256 * idf(2, 100)


def test_one_who_is_named_speaks_for_a_text_and_whom_he_talks_to_against_it() -> None:
    talk = [text("a", "Noon.", speaker="Zephyr Dahl"), text("b", "Lamp.", source_id="other", speaker="Mira")]
    partner = text("c", "Aside.", speaker="Mira")
    assert scorer(talk, "zephyr valve").base()["spk"].tolist() == [256, 0]
    assert scorer(talk, "zephyr valve", near=[partner]).base()["spk"].tolist() == [256, -256]


@pytest.mark.parametrize("words", ["", "the of", "unknown"])
def test_a_question_without_a_known_term_gives_nothing(words: str) -> None:
    found = scorer([text("a", "A zephyr.")], words).base()
    assert not any(values.any() for values in found.values())
