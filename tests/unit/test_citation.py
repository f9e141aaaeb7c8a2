"""A quote is found at the exact bytes that say it, in whatever Unicode form and with whatever white space."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unicodedata import combining, is_normalized, normalize

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import RequestError
from planner.selection.budget import resolve_budget
from planner.selection.select import select
from planner.trace.citation import cited, find, folded, judged
from planner.types import (
    Candidate,
    EvidencePlan,
    PlannedSpan,
    PlanRef,
    SelectionPolicy,
    SpanRef,
    evidence_id,
    ranked,
)

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
SPACES = (" ", "\n", "\t", "\u00a0", "\u2000", "\u2028", "\u3000")
MARKS = ("\u0301", "\u0323", "\u0338", "\u0344", "\u093c", "\u0f73", "\u0f74", "\u200d", "\ufe0f")
LETTERS = ("a", "q", "é", "\u212b", "\u1e9b", "क", "\u0958", "ཀ", "가", "ᄀ", "ᅡ", "ᆨ", "\u0bc6", "\u0bbe")
SIGNS = ("日", "🇦", "🇺", "👍", "🏽", "👩", ".", "\u200b", "\u0600", "\x1c", "\ufb01")
texts = st.lists(st.sampled_from((*SPACES, *MARKS, *LETTERS, *SIGNS)), max_size=14).map("".join)


def cut(text: str, at: tuple[int, int]) -> str:
    return text.encode()[slice(*at)].decode()


@given(texts, texts)
def test_what_is_found_says_just_the_quote_and_is_found_at_its_first_place(text: str, quote: str) -> None:
    if not quote.strip():
        return
    at = find(text, quote)
    in_it = folded(quote) in folded(text) if text.strip() else False
    if at is None:
        # Where it is there nevertheless, it would part what NFC joins or reorders.
        assert not in_it or not is_normalized("NFC", text)
        return
    assert in_it
    before, said, after = (cut(text, r) for r in ((0, at[0]), at, (at[1], len(text.encode()))))
    assert folded(said) == folded(quote)
    assert said == said.strip()
    assert "".join(normalize("NFC", part) for part in (before, said, after)) == normalize("NFC", text)
    if is_normalized("NFC", text):
        starts = (i for i in range(len(text)) if not text[i].isspace() and says(text[i:], folded(quote)))
        assert len(before) == next(starts)


def says(text: str, quote: str) -> bool:
    """Say whether text in NFC begins with a quote, but for its white space."""
    words = regex.escape(quote).replace(r"\ ", r"[\s\x1c-\x1f]+")
    return regex.match(words, text) is not None


@given(texts, st.integers(0, 14), st.integers(1, 14))
def test_a_part_of_a_text_is_found_in_it_and_of_a_text_in_nfc_every_part(
    text: str, start: int, length: int
) -> None:
    composed = normalize("NFC", text)
    part = composed[start : start + length]
    if part.strip():
        at = find(composed, part)
        assert at is not None
        assert folded(cut(composed, at)) == folded(part)
    if text.strip():
        assert find(text, text) is not None


@given(texts, st.sampled_from(("NFC", "NFD")), st.sampled_from(("NFC", "NFD")), st.sampled_from(SPACES))
def test_the_form_of_letters_and_the_sort_of_white_space_change_nothing(
    text: str, of_text: str, of_quote: str, space: str
) -> None:
    clusters = regex.findall(r"\X", text)
    quote = "".join(space + space if cluster.isspace() else cluster for cluster in clusters[1:-1])
    if quote.strip():
        whole = normalize(of_text, "x" + "".join(clusters[1:-1]) + "x")
        if normalize("NFC", "x" + quote + "x") != "x" + normalize("NFC", quote) + "x":
            return  # what begins with a mark belongs to the letter before it
        at = find(whole, f"{space}{normalize(of_quote, quote)}\n")
        assert at is not None
        assert folded(cut(whole, at)) == folded(quote)


def test_every_character_is_found_as_it_is_composed_and_as_it_is_decomposed() -> None:
    changed = [
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if not 0xD800 <= ord(char) < 0xE000 and not is_normalized("NFD", char)
    ]
    assert len(changed) > 10_000
    for char in changed[::7]:
        if char.isspace():
            continue
        decomposed = normalize("NFD", char)
        for text, quote in ((char, decomposed), (decomposed, char)):
            at = find(f"a{text}b", quote)
            assert at is None or cut(f"a{text}b", at) == text
            assert at is not None or combining(decomposed[0]), hex(ord(char))


@pytest.mark.parametrize(
    ("text", "quote", "expected"),
    [
        ("The gate closes.", "gate", "gate"),
        ("The gate\n  closes.", " gate closes ", "gate\n  closes"),
        ("cafe\u0301 noir", "café", "cafe\u0301"),
        ("café noir", "cafe\u0301", "café"),
        ("cafe\u0301 noir", "cafe", None),
        ("café noir", "cafe", None),
        ("q\u0301\u0323 x", "q\u0323\u0301", "q\u0301\u0323"),
        ("q\u0301\u0323 x", "q\u0323", None),
        ("q\u0301 x", "q", "q"),
        ("각", "가\u11a8", "각"),
        ("각", "가", None),
        ("\u212b", "Å", "\u212b"),
        ("The gate", "the gate", None),
        ("ﬁn", "fin", None),
        ("a\u200bb", "a b", None),
        ("日本 語", "本\u3000語", "本 語"),
        ("ab ab", "ab", "ab"),
        ("lone", "\ud800", None),
        ("a", "a\0", None),
    ],
)
def test_the_bytes_are_those_of_the_original(text: str, quote: str, expected: str | None) -> None:
    at = find(text, quote)
    assert (None if at is None else cut(text, at)) == expected
    if at is not None:
        assert at[0] == text.encode().index((expected or "").encode())


@pytest.mark.parametrize("quote", ["", " ", "\n\t\u3000", None, 3])
def test_a_quote_says_something(quote: Any) -> None:
    with pytest.raises(RequestError, match="quote"):
        find("text", quote)


POLICY = SelectionPolicy({"paragraph": 1.0}, 0.5, 0.8)


def plan_of(*candidates: Candidate) -> EvidencePlan:
    budget = resolve_budget(1_000, counter="c", bound="exact", max_frac=1.0)
    selection = select(candidates, POLICY, budget)
    return EvidencePlan(
        ref=PlanRef("s", "00000000-0000-7000-8000-000000000000"),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        outcome="planned",
        error=None,
        plan_hash=None,
        pool_hash=None,
        plan_model="v1",
        score_model="v1",
        as_of=1,
        budget=budget,
        used=selection.used,
        stats=selection.stats,
        optimality_gap_ppm=0,
        spans=tuple(PlannedSpan(v, f"text of {v.candidate.source_id}") for v in selection.selected),
        rejected=(),
        request={},
        recall={},
        timings={},
    )


def candidate(source_id: str, score: float, tokens: int = 10, **more: Any) -> Candidate:
    return replace(Candidate(source_id, 3, 40, 60, "paragraph", "truth", score, tokens), **more)


PLAN = plan_of(
    candidate("b", 0.5, tokens=1),
    candidate("a", 0.5),
    candidate("best", 0.9, tokens=100),
    candidate("made", 1.0, source_class="cache"),
)


def test_evidence_is_named_by_its_rank_not_by_the_order_in_which_it_was_packed() -> None:
    names = [span.verdict.candidate.source_id for span in ranked(PLAN)]
    assert names == ["best", "a", "b", "made"]
    assert [span.verdict.candidate.source_id for span in PLAN.spans] != names
    for rank, span in enumerate(ranked(PLAN), start=1):
        assert cited(PLAN, evidence_id(rank)) == cited(PLAN, str(span.verdict.candidate.ref)) == span
    for unknown in ("E0", "E5", "E01", "e1", "E1 ", "1", "", "E" + "9" * 5_000, "b@3:40-61", "b"):
        assert cited(PLAN, unknown) is None


def test_only_truth_is_for_verification() -> None:
    evidence = PLAN.for_verification()
    assert [item.evidence for item in evidence] == ["E1", "E2", "E3"]
    assert [item.text for item in evidence] == ["text of best", "text of a", "text of b"]
    assert evidence[0].to_dict() == {
        "evidence": "E1",
        "ref": "best@3:40-60",
        "text": "text of best",
        "text_hash": "00" * 32,
    }
    erased = replace(PLAN, spans=tuple(replace(span, text=None) for span in PLAN.spans))
    assert [item.text for item in erased.for_verification()] == [None] * 3


def judge(evidence: str, quote: str, text: str | None) -> Any:
    return judged(PLAN, evidence, quote, cited(PLAN, evidence), text)


def test_each_verdict_has_its_sentence() -> None:
    supported = judge("E1", "of  best", "text of best")
    assert (supported.verdict, supported.supported) == ("supported", True)
    assert supported.found == SpanRef("best", 3, 45, 52)
    assert supported.sentence == "The quote is in E1 (best@3:40-60), at best@3:45-52."
    told = {
        "not_in_span": judge("best@3:40-60", "elsewhere", "text of best"),
        "erased": judge("E1", "best", None),
        "cache_class": judge("E4", "text", "text of made"),
        "unknown_evidence": judge("E5", "text", None),
    }
    for verdict, citation in told.items():
        assert (citation.verdict, citation.supported, citation.found) == (verdict, False, None)
        assert citation.sentence.endswith(".")
    assert "best@3:40-60" in told["not_in_span"].sentence
    assert told["unknown_evidence"].sentence == "The plan has no evidence 'E5'; it has E1 to E4."
    assert (told["unknown_evidence"].ref, told["cache_class"].ref) == (None, SpanRef("made", 3, 40, 60))
    empty = judged(plan_of(), "E1", "text", None, None)
    assert empty.sentence.endswith("it has no evidence.")
    with pytest.raises(RequestError, match="white space"):
        judge("E1", " ", "text")
