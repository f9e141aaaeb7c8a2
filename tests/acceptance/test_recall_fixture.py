"""The labelled questions of the shipped corpus: what must be included is selected."""

from __future__ import annotations

import pytest

from planner import Planner
from planner.demo import DemoQuestion, corpus_folder, questions


@pytest.fixture(scope="module")
def planner(module_database_url: str) -> Planner:
    planner = Planner.connect(module_database_url)
    report = planner.ingest("demo", corpus_folder())
    assert not report.failures
    return planner


@pytest.mark.parametrize("plan_model", ["v1", "v2"])
@pytest.mark.parametrize("question", questions(), ids=lambda question: question.question_id)
def test_labelled_phrases_are_selected_within_the_budget(
    planner: Planner, question: DemoQuestion, plan_model: str
) -> None:
    plan = planner.plan(
        "demo",
        question.text,
        budget_tokens=question.budget_tokens,
        min_score=question.min_score,
        plan_model=plan_model,
    )
    evidence = "\n".join(span.text or "" for span in plan.spans)
    assert [phrase for phrase in question.must_include if phrase.text not in evidence] == []
    assert plan.used <= plan.budget.budget <= question.budget_tokens
