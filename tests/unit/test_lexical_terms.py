"""The analysis of texts, packed sequences, and where titles are mentioned."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from planner.ingest import SpanText
from planner.lexical import terms
from planner.lexical.documents import Reader, Setting
from planner.lexical.packing import MAX_FREQUENCY, finding, frequencies, joined, numbers, pack, unpack
from planner.lexical.terms import APART, CAPITAL, STOP, analyse, numbered, term_id
from planner.lexical.titles import MAX_TITLE_TERMS, Mentions, title_forms
from planner.types import NodeDraft

WORDS = st.lists(
    st.sampled_from(["the", "Gate", "gate", "gates", "of", "12", "東京都", "Zoë", "x"]), max_size=12
)
GAPS = st.sampled_from([" ", ", ", "-", "\n", " (", "’"])


def words(text: str) -> list[str]:
    return [term.text for term in analyse(text)]


def sequence(text: str) -> np.ndarray:
    return np.array(numbered(text), dtype=np.int64)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Harbours, harbour's HARBOUR", ["harbour", "harbour", "harbour"]),
        ("ﬁne Ｗｉｄｅ Straße Zoë Ångström", ["fine", "wide", "strass", "zoe", "angstrom"]),
        (
            "parseHTML2x HTTPServer snake_case e-mail",
            [*["pars", "html2x", "http", "server", "snake", "case", "e", "mail"]],
        ),
        ("don't O’Brien's", ["don", "t", "o", "brien"]),
        ("東京タワー に 行く", ["東京", "京タ", "タワ", "ワー", "に", "行く"]),
        ("한국어2021年", ["한국", "국어", "2021", "年"]),
        ("हिन्दी ภาษาไทย עברית", ["हिन्दी", "ภาษาไทย", "עברית"]),
        ("… — !?", []),
        ("", []),
    ],
)
def test_words_become_terms(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_term_says_how_it_stands_in_its_text() -> None:
    found = analyse("The Gate (of 10), see B.")
    assert [(t.text, t.stop, t.capital, t.apart) for t in found] == [
        ("the", True, True, False),
        ("gate", False, True, False),
        ("of", True, False, True),
        ("10", False, True, False),
        ("see", False, False, True),
        ("b", False, True, False),
    ]


def test_the_numbers_of_terms_are_the_same_on_every_machine() -> None:
    assert [term_id(term) for term in ("gate", "東京", "")] == [
        6965935202871080912,
        -3446765969000668472,
        -6439591158392220760,
    ]
    assert all(term_id(term) & 7 == 0 for term in map(str, range(1_000)))


@given(WORDS, st.lists(GAPS, min_size=12, max_size=12), st.text())
def test_numbers_say_what_terms_say(some: list[str], gaps: list[str], end: str) -> None:
    text = "".join(word + gap for word, gap in zip(some, gaps, strict=False)) + end
    assert numbered(text) == [
        term_id(t.text) | CAPITAL * t.capital | APART * t.apart | STOP * t.stop for t in analyse(text)
    ]


def test_the_fast_way_finds_the_words_that_the_whole_one_finds() -> None:
    plain = [chr(code) for code in (*range(0x300), *range(0x2000, 0x2070))]
    for char in plain:
        text = f"a{char}b {char}"
        assert terms._PLAIN_WORD.split(text) == terms._WORD.split(text), hex(ord(char))
    marks = regex.compile(r"\p{M}")
    assert not any(marks.match(char) for char in plain)
    assert not terms._PLAIN.fullmatch("e\u0301") and not terms._PLAIN.fullmatch("東")


def test_what_is_kept_of_words_is_bounded_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join([*"abcdefgh", "x" * 100, "東京都"] * 3)
    kept = numbered(text)
    monkeypatch.setattr(terms, "_KNOWN_WORDS", 3)
    monkeypatch.setattr(terms, "_known", {})
    assert numbered(text) == kept
    assert len(terms._known) <= 3


def test_threads_stem_alike() -> None:
    some = [
        f"{word}{ending}" for word in ("walk", "relat", "nation") for ending in ("ing", "ional", "ed", "ly")
    ]
    terms._known.clear()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(numbered, [f"{word}{'x' * (i % 3)}" for i in range(40) for word in some]))
    again = [numbered(f"{word}{'x' * (i % 3)}") for i in range(40) for word in some]
    assert found == again


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_what_is_packed_is_unpacked(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    assert unpack(pack(array)).tolist() == values
    assert len(pack(array)) == 8 * len(values)


@given(st.lists(st.text(alphabet="ab the", max_size=30), max_size=6))
def test_frequencies_count_each_term_of_each_text(texts: list[str]) -> None:
    counted = [
        (term_id(term), place, count)
        for place, text in enumerate(texts)
        for term, count in Counter(t.text for t in analyse(text) if not t.stop).items()
    ]
    found = frequencies([sequence(text) for text in texts])
    assert list(zip(*(array.tolist() for array in found), strict=True)) == sorted(counted)


def test_a_term_counts_at_most_255_times_and_parts_stand_apart() -> None:
    assert frequencies([sequence("gate " * 300)])[2].tolist() == [MAX_FREQUENCY]
    parts = joined([numbered("the gate"), [], numbered("opens")])
    assert (numbers(parts) == numbers(sequence("the gate opens"))).all()
    assert (parts & APART).tolist() == [0, 0, APART]
    assert finding(parts).tolist() == [term_id("gate"), term_id("open")]


def test_a_node_is_indexed_with_what_its_spans_stand_in_said_once() -> None:
    node = NodeDraft("n", "fact", "Row / Column", (("b", 0, 5), ("a", 0, 4), ("a", 5, 9)))
    texts = {
        ("b", 0, 5): SpanText("paragraph", "Gates"),
        ("a", 0, 4): SpanText("cell", "Four"),
        ("a", 5, 9): SpanText("heading", "Tide"),
    }
    settings = {
        ("b", 0, 5): Setting("Log", ("Tide", "Sub"), "Ann"),
        ("a", 0, 4): Setting("Book", ("Sub",), None),
        ("a", 5, 9): Setting(None, (), "Ann"),
    }
    doc = Reader({"paragraph": 1.0, "cell": 0.8, "heading": 0.6}).document(node, texts, settings)
    assert numbers(doc.terms).tolist() == [term_id(t) for t in words("Gates Row Column Four Tide")]
    assert numbers(doc.context).tolist() == [term_id(t) for t in words("Log Sub Ann Book")]
    assert doc.length == 9
    assert len(doc.whole) == 9


MENTIONED = [
    ("Ethan of Athos", "He read Ethan of Athos twice", True),
    ("Ethan of Athos", "ethan of athos", True),
    ("Ethan of Athos", "Ethan, of Athos", False),
    ("Ethan of Athos", "Ethan in Athos", False),
    ("Ethan of Athos", "Ethan of", False),
    ("Mercury (planet)", "Mercury (planet) rose", True),
    ("Mercury (planet)", "He saw Mercury rise", True),
    ("Mercury (planet)", "a drop of mercury", False),
    ("Gate", "the gate closes", False),
    ("Gate", "the Gate closes", True),
    ("gate", "the Gates", True),
    ("The Band", "the band", False),
    ("The Band", "the Band", True),
    ("Black Sea", "the black sea", True),
    ("Foo: the bar", "foo - the bar", True),
    ("Foo the bar", "foo: the bar", False),
    ("東京", "東京都に行く", True),
    ("東京タワー", "東京タワーの下", True),
    ("東京タワー", "東京駅とタワー", False),
    ("עברית", "שפה עברית היא", True),
]


@pytest.mark.parametrize(("title", "text", "found"), MENTIONED)
def test_a_title_is_found_where_it_is_written(title: str, text: str, found: bool) -> None:
    mentions = Mentions([("key", form.terms) for form in title_forms(title)])
    assert list(mentions.found_in([sequence("unrelated"), sequence(text)])) == ([(1, "key")] if found else [])


@pytest.mark.parametrize(
    "title", [None, "", "…", "It", "To be or not to be", "1984", "01 913", "X", "水", "the 7", "word " * 33]
)
def test_a_title_that_says_too_little_or_too_much_is_none(title: str | None) -> None:
    assert title_forms(title) == []
    assert len(title_forms("word " * MAX_TITLE_TERMS)) == 1


def test_a_title_has_its_short_form_where_that_says_something() -> None:
    assert [t.form for t in title_forms("Mercury (planet)")] == [0, 1]
    assert [t.form for t in title_forms("It (novel)")] == [0]
    assert [t.form for t in title_forms("(1984)")] == []
    (gatsby,) = title_forms("The Great Gatsby")
    assert gatsby.first_term == term_id("great")


@given(st.lists(st.sampled_from(["Gate", "the", "Red", "Sea", "in"]), max_size=14), st.data())
def test_titles_are_found_as_by_looking_everywhere(some: list[str], data: st.DataObject) -> None:
    text = " ".join(some)
    titles = data.draw(
        st.lists(st.sampled_from(["Red Sea", "the Red", "Sea in the Gate", "Gate Gate", "Gate"]))
    )
    mentions = Mentions([(title, form.terms) for title in titles for form in title_forms(title)])
    expected = {t for t in titles if re.search(rf"(^| ){t}( |$)", text) and title_forms(t)}
    found = list(mentions.found_in([sequence(text)]))
    assert {title for _, title in found} == expected
    assert len(found) == len(expected)
