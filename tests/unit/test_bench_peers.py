"""What the comparison with other libraries does of its own, without them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from planner.embedders import CallableEmbedder
from planner.evaluation.corpora import Question
from planner.evaluation.metrics import Item
from planner.types import SpanRef
from tests.benchmarks.bench_peers import BASE, BUDGETS, Answer, contest, main, table
from tests.benchmarks.chunks import packed, remembered

FIRST, SECOND, THIRD = (SpanRef("a", 1, start, start + 10) for start in (0, 10, 20))


def test_packing_stops_at_the_first_text_that_does_not_fit() -> None:
    hits = [(FIRST, "好" * 6), (SECOND, "好" * 5), (THIRD, "好")]
    assert packed(hits, 11) == [FIRST, SECOND]
    assert packed(hits, 10) == [FIRST]
    assert packed(hits, 5) == []


def test_a_text_is_embedded_once_whoever_asks() -> None:
    asked: list[str] = []

    def embed(texts: list[str]) -> npt.ArrayLike:
        asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts])

    embedder = remembered(CallableEmbedder("lengths", 2, embed, "r1"))
    assert embedder.embed(["b", "aa", "b"]).tolist() == [[1, 1], [2, 1], [1, 1]]
    assert embedder.embed(["aa", "ccc"]).tolist() == [[2, 1], [3, 1]]
    assert asked == ["b", "aa", "ccc"]
    assert (embedder.name, embedder.revision) == ("lengths", "r1")


def test_everybody_is_asked_everything_and_judged_alike() -> None:
    question = Question.model_validate({"question_id": "1", "scope": "s", "text": "which?"})
    items = [Item("a", ((0, 10),)), Item("a", ((20, 30),))]
    seen: list[tuple[str, str, str, int]] = []

    def answering(name: str, *found: SpanRef) -> Answer:
        def answer(scope: str, text: str, budget: int) -> Sequence[SpanRef]:
            seen.append((name, scope, text, budget))
            return found

        return answer

    contenders = {BASE: answering(BASE, FIRST), "all": answering("all", FIRST, THIRD)}
    tallies = contest(contenders, [(question, items)])
    warming = [(name, "s", "s", BUDGETS[-1]) for name in contenders]
    asked = [(name, "s", "which?", budget) for name in contenders for budget in reversed(BUDGETS)]
    assert seen == [*warming, *asked]
    assert [len(tally.took) for tally in tallies.values()] == [1, 1]
    figures = {name: tally.figures() for name, tally in tallies.items()}
    for budget in BUDGETS:
        assert figures[BASE]["budgets"][str(budget)] == {"evidence_recall": 0.5, "all_evidence": 0.0}
        assert figures["all"]["budgets"][str(budget)] == {"evidence_recall": 1.0, "all_evidence": 1.0}
    lines = list(table({"corpus": "c", "questions": 1, "chunks": 3, "titles": False, "contenders": figures}))
    assert lines[0] == "c: 1 questions, 3 chunks"
    assert lines[2].count(" 50/0") == lines[3].count(" 100/100") == len(BUDGETS)


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tests.benchmarks.peers", raising=False)
    monkeypatch.setitem(sys.modules, "langchain_core.embeddings", None)
    monkeypatch.setattr(sys, "argv", ["bench_peers", "nowhere"])
    with pytest.raises(SystemExit, match=r"pip install '\.\[peers\]'"):
        main()
