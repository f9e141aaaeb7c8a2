"""Weights fitted to corpora on a real server: the same file every time, and a plan that scores by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner import Planner, Settings
from planner.errors import MalformedInput, RequestError, SettingsError
from planner.evaluation.corpora import Corpus, read_corpus
from planner.evaluation.fit.document import Fitted
from planner.evaluation.fit.program import fit
from planner.evaluation.fit.rankings import OTHERS, OWN
from planner.evaluation.measure import measure
from planner.pipeline.explain import recorded
from planner.recall.v2.weights import TERMS, weights
from tests.integration.graph import Graph

OWN_CORPUS = read_corpus(Path(__file__).parents[1] / "corpus")
BUDGETS = (64, 128, 256)
V2 = Settings(score_model="v2", plan_model="v2", max_frac_per_source=1.0)


@pytest.fixture(scope="module")
def fitted(server_url: str) -> Fitted:
    return fit([OWN_CORPUS], server_url, [Settings()], budgets=BUDGETS)


@pytest.fixture
def file(fitted: Fitted, tmp_path: Path) -> str:
    path = tmp_path / "weights.json"
    path.write_text(fitted.file(), encoding="utf-8")
    return str(path)


def halves() -> tuple[Corpus, Corpus]:
    """Return the corpus twice, with every other question each."""
    first, second = OWN_CORPUS.questions[::2], OWN_CORPUS.questions[1::2]
    return replace(OWN_CORPUS, name="a", questions=first), replace(OWN_CORPUS, name="b", questions=second)


def test_the_same_corpora_give_the_same_file_byte_for_byte(server_url: str, fitted: Fitted) -> None:
    seen: list[tuple[str, int, int]] = []
    again = fit(
        [OWN_CORPUS], server_url, [Settings()], budgets=BUDGETS, progress=lambda *done: seen.append(done)
    )
    assert again.file() == fitted.file()
    stages = [stage for stage, done, total in seen if done == total]
    assert stages == [f"mill: {stage}" for stage in ("ingest", "round 1", "round 2", "measured")]


def test_the_file_names_its_ground_and_loads(fitted: Fitted, file: str) -> None:
    found = weights(file)
    assert dict(found.of) == dict(fitted.numbers.weights)
    assert list(found.of) == list(TERMS)
    assert found.version == "v2/fit"
    (one,) = fitted.measured
    assert (one.corpus, one.embedder, one.sources) == ("mill", "wordllama", len(OWN_CORPUS.sources))
    assert one.questions == sum(bool(question.evidence) for question in OWN_CORPUS.questions)
    assert one.left_out is None
    assert list(one.figures) == [OWN, *OTHERS]
    assert fitted.started_from == weights().name


def test_the_figures_are_those_of_an_evaluation_with_that_file(
    server_url: str, fitted: Fitted, file: str
) -> None:
    settings = V2.model_copy(update={"score_weights": file})
    (report,) = measure(OWN_CORPUS, server_url, [settings], budgets=BUDGETS, specified=False)
    theirs = {
        budget: {name: cell[name] for name in ("evidence_recall", "all_evidence")}
        for budget, cell in report["budgets"].items()
    }
    assert fitted.measured[0].figures[OWN] == theirs
    assert 0 < theirs["64"]["evidence_recall"] < 1


def test_what_is_left_out_has_no_part_in_its_own_weights(server_url: str) -> None:
    how: dict[str, Any] = {"budgets": (64,), "rounds": 1}
    both = fit(halves(), server_url, [Settings()], **how)
    alone = [fit([half], server_url, [Settings()], **how).numbers for half in halves()]
    left_out = [one.left_out for one in both.measured]
    assert [one and one.numbers for one in left_out] == alone[::-1]
    assert both.numbers not in alone


def test_embedders_of_a_corpus_share_its_part(server_url: str) -> None:
    how: dict[str, Any] = {"budgets": (64,), "rounds": 1}
    a, _ = halves()
    once, twice = (fit([a], server_url, [Settings()] * times, **how) for times in (1, 2))
    assert twice.numbers == once.numbers
    assert [one.left_out for one in twice.measured] == [None, None]


def test_a_plan_by_a_file_of_ones_own_is_recorded_and_made_again_by_the_same(
    planner: Planner, scope: str, file: str
) -> None:
    Graph().node("a", 10, text="A zephyr valve.").node("b", 20, text="Aside.").into(planner, scope)
    own = Planner(replace(planner.engine, settings=V2.model_copy(update={"score_weights": file})))
    plan = own.plan(scope, "zephyr valve", budget_tokens=512)
    assert recorded(own.engine, plan.ref).versions["score_weights"] == weights(file).name
    assert own.replan(plan.ref).drifts == ()
    other = Planner(replace(planner.engine, settings=V2)).replan(plan.ref)
    assert not other.identical
    (drift,) = other.drifts
    assert drift.drift == "code"
    assert f"score_weights was {weights(file).name}, is {weights().name}" in drift.evidence


def test_a_bad_file_is_refused_when_it_is_asked_for(planner: Planner, scope: str, tmp_path: Path) -> None:
    Graph().node("a", 10, text="A zephyr valve.").into(planner, scope)
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    bad = V2.model_copy(update={"score_weights": str(tmp_path / "bad.json")})
    with pytest.raises(SettingsError, match=r"score_weights = .*bad\.json': version: Field required"):
        Planner(replace(planner.engine, settings=bad)).plan(scope, "zephyr", budget_tokens=512)
    first = Planner(replace(planner.engine, settings=bad.model_copy(update={"score_model": "v1"})))
    assert first.plan(scope, "zephyr", budget_tokens=512).spans


def test_what_cannot_be_fitted_is_refused(server_url: str) -> None:
    with pytest.raises(RequestError, match="a name of its own"):
        fit([OWN_CORPUS, OWN_CORPUS], server_url, [Settings()])
    with pytest.raises(RequestError, match="version = 'two words'"):
        fit([OWN_CORPUS], server_url, [Settings()], version="two words")
    unlabelled = tuple(question for question in OWN_CORPUS.questions if not question.evidence)
    with pytest.raises(MalformedInput, match="'mill' has no question whose evidence is labelled"):
        fit([replace(OWN_CORPUS, questions=unlabelled)], server_url, [Settings()])
