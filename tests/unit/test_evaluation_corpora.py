"""Corpora as they are read: the project's own is sound, what is wrong is named by file, line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import MalformedInput, UnreadableInput
from planner.evaluation.corpora import read_corpus

OWN = Path(__file__).parents[1] / "corpus"

TEXT = {
    "scope": "s",
    "source_id": "a.md",
    "title": "A",
    "media_type": "text/markdown",
    "text": "Grüße, world",
}
TALK = {"scope": "s", "source_id": "talk", "messages": [{"id": 7, "speaker": "Ada", "text": "Hello."}]}
QUESTION = {
    "question_id": "q1",
    "scope": "s",
    "text": "Who?",
    "category": "c",
    "answer": "world",
    "evidence": [{"source_id": "a.md", "start": 0, "end": 7}],
}


def written(folder: Path, sources: list[Any], questions: list[Any]) -> Path:
    for name, rows in (("sources.jsonl", sources), ("questions.jsonl", questions)):
        lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
        (folder / name).write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return folder


def asked(**changes: Any) -> dict[str, Any]:
    return {**QUESTION, **changes}


def test_a_corpus_is_read_in_order_and_unknown_fields_are_passed_over(tmp_path: Path) -> None:
    questions = [
        asked(more=1),
        asked(question_id=2, answer=1984, evidence=[{"source_id": "talk", "message_id": 7}]),
        asked(question_id="q3", answer=["a", 2], evidence=[]),
    ]
    corpus = read_corpus(written(tmp_path, [{**TEXT, "licence": "x"}, TALK], questions))
    assert corpus.name == tmp_path.name
    assert [source.source_id for source in corpus.sources] == ["a.md", "talk"]
    assert [question.question_id for question in corpus.questions] == ["q1", "2", "q3"]
    assert [question.answers for question in corpus.questions] == [("world",), ("1984",), ("a", "2")]
    assert corpus.questions[1].evidence[0].message_id == "7"
    (tmp_path / "corpus.json").write_text('{"name": "mine"}', encoding="utf-8")
    assert read_corpus(tmp_path).name == "mine"


@pytest.mark.parametrize(
    ("sources", "questions", "said"),
    [
        (["{"], [QUESTION], r"sources.jsonl, line 1: .*JSON"),
        ([TEXT, {"scope": "s", "source_id": "b"}], [QUESTION], "line 2: .*text or messages"),
        ([{**TEXT, "messages": []}], [QUESTION], "line 1: .*text or messages"),
        ([{**TEXT, "scope": "no scope"}], [QUESTION], "line 1: scope"),
        ([{**TEXT, "text": 5}], [QUESTION], "line 1: text"),
        ([TEXT, TEXT], [QUESTION], "sources.jsonl: a.md of s is there more than once"),
        ([TEXT], [QUESTION, QUESTION], "questions.jsonl: q1 is there more than once"),
        ([TEXT], [], "0 questions"),
        ([], [QUESTION], "0 sources"),
        ([TEXT], [asked(text="")], "line 1: text"),
        ([TEXT], [asked(evidence=[{"source_id": "b", "start": 0, "end": 1}])], "b: 0-1: no such source"),
        ([TEXT], [asked(scope="t")], "no such source in the question's scope"),
        ([TEXT], [asked(evidence=[{"source_id": "a.md", "start": 0, "end": 99}])], "ends at byte 14"),
        ([TEXT], [asked(evidence=[{"source_id": "a.md", "start": 3, "end": 7}])], "inside a character"),
        ([TEXT], [asked(evidence=[{"source_id": "a.md", "start": 5, "end": 5}])], "an end beyond it"),
        ([TEXT], [asked(evidence=[{"source_id": "a.md", "start": -1, "end": 5}])], "evidence.0.start"),
        ([TEXT], [asked(evidence=[{"source_id": "a.md", "message_id": "1"}])], "no such message"),
        ([TALK], [asked(evidence=[{"source_id": "talk", "message_id": "8"}])], "no such message"),
        ([TALK], [asked(evidence=[{"source_id": "talk", "start": 0, "end": 3}])], "evidence is a message"),
        (
            [TALK],
            [asked(evidence=[{"source_id": "talk", "message_id": "7", "start": 0, "end": 3}])],
            "not both",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, sources: list[Any], questions: list[Any], said: str) -> None:
    with pytest.raises(MalformedInput, match=said):
        read_corpus(written(tmp_path, sources, questions))


def test_a_folder_that_is_no_corpus_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match=r"sources\.jsonl cannot be read"):
        read_corpus(tmp_path)
    written(tmp_path, [TEXT], [QUESTION])
    (tmp_path / "corpus.json").write_text("{", encoding="utf-8")
    with pytest.raises(MalformedInput, match=r"corpus\.json"):
        read_corpus(tmp_path)


def test_the_labels_of_the_projects_own_corpus_cut_out_what_they_quote() -> None:
    corpus = read_corpus(OWN)
    texts = {source.source_id: (source.text or "").encode() for source in corpus.sources}
    lines = (OWN / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    quoted = [evidence for line in lines for evidence in json.loads(line)["evidence"] if "quote" in evidence]
    assert quoted
    for evidence in quoted:
        assert texts[evidence["source_id"]][evidence["start"] : evidence["end"]].decode() == evidence["quote"]


def test_the_projects_own_corpus_asks_in_every_way() -> None:
    questions = read_corpus(OWN).questions
    categories = {question.category for question in questions}
    assert categories == {
        "exact lookup",
        "paraphrase",
        "multi-hop",
        "superseded fact",
        "negation",
        "no answer",
        "CJK",
        "conversation",
    }
    assert all(bool(question.evidence) == (question.category != "no answer") for question in questions)
    hops = [question for question in questions if question.category == "multi-hop"]
    assert all(len(question.evidence) >= 2 for question in hops)
