"""Reports that are written, read back, compared and checked against a baseline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from planner.errors import MalformedInput, RequestError, UnreadableInput
from planner.evaluation.asking import Asked, AtBudget, Got
from planner.evaluation.comparison import check, compare, sign_test
from planner.evaluation.corpora import Question
from planner.evaluation.report import SPECIFIED, encoded, report
from planner.evaluation.runner import Run
from planner.evaluation.stored import StoredReport, read_reports
from planner.settings import Settings
from planner.types import Unit

BUDGETS = (512, 1_024)

Found = tuple[int, bool | None]


def one(name: str, evidence: int, found: Sequence[Found], units: Sequence[Unit] = ()) -> Asked:
    """Return a question with so many evidence items, of which (found, answered) are there at each budget."""
    question = Question.model_validate(
        {"question_id": name, "scope": "s", "text": "?", "category": name[0], "evidence": []}
    )
    at = tuple(
        AtBudget(budget, Got(budget // 2, *got), 2, 0.25, 16, 500_000, dict.fromkeys(units, Got(100, *got)))
        for budget, got in zip(BUDGETS, found, strict=True)
    )
    return Asked(question, tuple(range(1, evidence + 1)), at)


def of(*asked: Asked, units: tuple[Unit, ...] = (), corpus: str = "c") -> dict[str, Any]:
    return report(Run(corpus, "toy", Settings(), units, asked, {"plan": [1.0, 2.0, 3.0]}))


def stored(path: Path, *documents: dict[str, Any]) -> tuple[StoredReport, ...]:
    path.write_text(encoded(documents), encoding="utf-8")
    return read_reports(path)


def test_a_report_has_the_shape_that_was_asked_for_and_means_over_the_right_questions() -> None:
    document = of(
        one("a1", 2, [(1, True), (2, True)]),
        one("b1", 1, [(0, None), (1, None)]),
        one("n1", 0, [(0, None), (0, None)]),
    )
    assert document["budgets"]["512"] == {
        "evidence_recall": 0.25,
        "all_evidence": 0.0,
        "answer_in_context": 1.0,
        "questions": 2,
        "answers": 1,
        "utilisation": 0.5,
        "distinct_sources": 2.0,
        "redundant_bytes": 0.25,
        "stranded_budget": 16 / 512,
        "optimality_gap": 0.5,
        "empty": 0,
        "delivered": {},
    }
    assert document["budgets"]["1024"]["all_evidence"] == 1.0
    assert document["categories"]["a"]["512"]["evidence_recall"] == 0.5
    assert document["categories"]["n"]["512"]["evidence_recall"] is None
    assert document["latency_ms"] == {"plan": {"p50": 2.0, "p95": 2.9, "p99": 2.98}}
    assert (document["corpus"], document["score_model"], document["plan_model"]) == ("c", "v2", "v2")
    assert (document["embedder"], document["asked"], document["ranking"]["questions"]) == ("toy", 3, 2)


def test_a_file_is_json_with_a_line_a_question_and_reads_back(tmp_path: Path) -> None:
    units: tuple[Unit, ...] = ("chunk", "auto")
    document = of(one("a1", 2, [(1, True), (2, True)], units), units=units)
    both = {**document, SPECIFIED: document}
    text = encoded([both])
    assert json.loads(text) == both
    assert json.loads(encoded([both, document])) == [both, document]
    assert sum('"a1": {' in line for line in text.splitlines()) == 2
    (read,) = stored(tmp_path / "r.json", both)
    assert read.specified is not None
    assert read.results["a1"].got("auto").found == (1, 2)
    assert read.specified.results == read.results


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "no report"),
        ("{}", "not a report of `planner eval run`: corpus"),
        (json.dumps({**of(one("a1", 1, [(1, None), (1, None)])), "budgets": {"512": {}}}), "'a1'"),
        (json.dumps({**of(one("a1", 1, [(1, None), (1, None)])), "units": ["chunk"]}), "'a1'"),
    ],
)
def test_a_file_that_is_no_report_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MalformedInput, match=said):
        read_reports(path)
    with pytest.raises(UnreadableInput):
        read_reports(tmp_path / "none.json")


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_sign_test_is_scipys(better: int, worse: int) -> None:
    n = better + worse
    wanted = binomtest(better, n).pvalue if n else 1.0
    assert sign_test(better, worse) == pytest.approx(wanted, rel=1e-9)


def test_a_comparison_is_paired_over_the_questions_of_both(tmp_path: Path) -> None:
    names = [f"a{i}" for i in range(12)]
    a = of(*(one(name, 2, [(0, None), (1, None)]) for name in names))
    b = of(*(one(name, 2, [(1, None), (1, None)]) for name in [*names[1:], "new"]))
    found = compare(stored(tmp_path / "a.json", a), stored(tmp_path / "b.json", b))
    by = {(one.budget, one.metric): one for one in found}
    recall = by[512, "evidence_recall"]
    assert (recall.a, recall.b, recall.better, recall.worse) == (0.0, 0.5, 11, 0)
    assert (recall.p, recall.verdict) == (2 / 2**11, "B is better")
    assert by[512, "all_evidence"].verdict == "no clear difference"
    assert by[1_024, "evidence_recall"].p == 1.0
    assert "answer_in_context" not in {metric for _, metric in by}
    back = compare(stored(tmp_path / "b.json", b), stored(tmp_path / "a.json", a))
    assert back[0].verdict == "B is worse"
    with pytest.raises(RequestError, match="A is of c, B of d"):
        compare(stored(tmp_path / "a.json", a), stored(tmp_path / "d.json", {**b, "corpus": "d"}))


def test_a_fall_beyond_the_tolerance_is_named_with_the_questions_that_got_worse(tmp_path: Path) -> None:
    units: tuple[Unit, ...] = ("chunk",)
    sound = [one(f"a{i}", 2, [(1, True), (2, True)], units) for i in range(9)]
    was = stored(tmp_path / "was.json", of(*sound, one("b1", 2, [(1, True), (2, True)], units), units=units))
    now = stored(tmp_path / "now.json", of(*sound, one("b1", 2, [(1, False), (1, True)], units), units=units))
    assert check(was, was, 0.0, {}).falls == ()
    assert (
        check(now, was, 0.1, {}).falls == ()
    )  # each fell by a tenth at most, which is exactly the tolerance
    found = check(now, was, 0.01, {"answer_in_context": 0.1})
    assert {(fall.figure, fall.was, fall.now) for fall in found.falls} == {
        ("evidence_recall at 1024", 1.0, 0.95),
        ("all_evidence at 1024", 1.0, 0.9),
        ("evidence_recall at 1024 delivered by chunk", 1.0, 0.95),
        ("all_evidence at 1024 delivered by chunk", 1.0, 0.9),
    }
    assert {(w.question, w.budget, w.unit, w.was, w.now, w.answer_lost) for w in found.worse} == {
        ("b1", 512, None, 1, 1, True),
        ("b1", 1_024, None, 2, 1, False),
        ("b1", 512, "chunk", 1, 1, True),
        ("b1", 1_024, "chunk", 2, 1, False),
    }
    assert json.loads(json.dumps(found.to_dict()))["falls"][0]["now"] is not None


def test_what_the_baseline_has_and_the_report_lacks_is_no_pass(tmp_path: Path) -> None:
    asked = [one("a1", 1, [(1, None), (1, None)])]
    was = stored(tmp_path / "was.json", of(*asked))
    fewer = of(*asked)
    del fewer["budgets"]["1024"]
    for result in fewer["results"].values():
        result["found"].pop()
    found = check(stored(tmp_path / "now.json", fewer), was, 1.0, {})
    assert {fall.figure for fall in found.falls} == {"evidence_recall at 1024", "all_evidence at 1024"}
    assert {fall.now for fall in found.falls} == {None}
    with pytest.raises(RequestError, match="nothing beside it"):
        check(stored(tmp_path / "now.json", of(*asked, corpus="d")), was, 0.0, {})
    with pytest.raises(RequestError, match="asked 2 questions, the baseline 1"):
        check(stored(tmp_path / "now.json", of(*asked, one("a2", 1, [(1, None), (1, None)]))), was, 0.0, {})


def test_the_specified_rule_is_checked_beside_what_is_configured(tmp_path: Path) -> None:
    good, bad = of(one("a1", 1, [(1, None), (1, None)])), of(one("a1", 1, [(0, None), (1, None)]))
    was = stored(tmp_path / "was.json", {**good, SPECIFIED: good})
    assert len(check(stored(tmp_path / "now.json", {**good, SPECIFIED: bad}), was, 0.0, {}).falls) == 2
    assert check(stored(tmp_path / "now.json", good), was, 0.0, {}).falls == ()
