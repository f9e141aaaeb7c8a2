"""The pure parts of ablations, pooled corpora and sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import RequestError
from planner.evaluation import ablation
from planner.evaluation.ablation import Ablated, Mute
from planner.evaluation.asking import Asked, AtBudget, Got, part
from planner.evaluation.corpora import Corpus, Question, Source
from planner.evaluation.quality import quality, recall
from planner.evaluation.report import report
from planner.evaluation.runner import Run
from planner.evaluation.sweep import Grid
from planner.evaluation.together import SCOPE, together
from planner.recall.v2.weights import TERMS, weights
from planner.settings import Settings
from planner.surfaces.cli.eval_options import budgets_of, shares_of, units_of

NAMES = st.sampled_from(["a", "s/a", "t/a", "a/b"])


def corpus(name: str, places: list[tuple[str, str]]) -> Corpus:
    """Return a corpus of sources by scope and id, with a question a scope whose evidence is all of it."""
    sources = tuple(Source(scope=scope, source_id=source, text="It.") for scope, source in places)
    asked = [
        {
            "question_id": scope,
            "scope": scope,
            "text": "?",
            "evidence": [{"source_id": s, "start": 0, "end": 3} for at, s in places if at == scope],
        }
        for scope in dict(places)
    ]
    return Corpus(name, sources, tuple(map(Question.model_validate, asked)))


@given(
    places=st.lists(st.tuples(st.sampled_from(["s", "t"]), NAMES), min_size=1, unique=True),
    names=st.lists(st.sampled_from(["s", "s/s", "s%2Fs", "s/t"]), min_size=1, max_size=3, unique=True),
)
def test_corpora_that_share_a_scope_keep_every_source_and_every_label(
    places: list[tuple[str, str]], names: list[str]
) -> None:
    alone = [corpus(name, places) for name in names]
    made = together(alone)
    assert [one.name for one in made] == names
    assert {source.scope for one in made for source in one.sources} == {SCOPE}
    everything = [source.source_id for one in made for source in one.sources]
    assert len(set(everything)) == len(everything) == len(names) * len(places)
    for was, now in zip(alone, made, strict=True):
        ids = {(s.scope, s.source_id): t.source_id for s, t in zip(was.sources, now.sources, strict=True)}
        for before, after in zip(was.questions, now.questions, strict=True):
            assert (after.question_id, after.scope) == (before.question_id, SCOPE)
            wanted = [ids[before.scope, evidence.source_id] for evidence in before.evidence]
            assert [evidence.source_id for evidence in after.evidence] == wanted


def test_two_corpora_of_one_name_are_not_put_together() -> None:
    with pytest.raises(RequestError, match="two corpora are named 'x'"):
        together([corpus("x", [("s", "a")]), corpus("y", [("s", "a")]), corpus("x", [("s", "b")])])


def test_every_term_of_the_score_is_in_one_group() -> None:
    grouped = [term for terms in ablation.TERMS.values() for term in terms]
    assert sorted(grouped) == sorted(TERMS)


@pytest.mark.parametrize("name", ablation.TERMS)
def test_a_group_that_is_left_out_has_no_weight_and_all_else_is_as_in_force(
    tmp_path: Path, name: str
) -> None:
    out = ablation.TERMS[name]
    full = weights()
    without = weights(str(ablation.without_terms(tmp_path, None, out)))
    assert without.of == {term: 0 if term in out else weight for term, weight in full.of.items()}
    assert (without.per, without.knots) == (full.per, full.knots)
    own = tmp_path / "own.json"
    document = json.loads((tmp_path / "weights.json").read_text(encoding="utf-8"))
    own.write_text(json.dumps({**document, "weights": {"cos": 3, "spk": 2, out[0]: 7}}), encoding="utf-8")
    mine = weights(str(ablation.without_terms(tmp_path, str(own), out)))
    assert {term for term, weight in mine.of.items() if weight} == {"cos", "spk"} - set(out)


def test_a_mute_embedder_is_the_scope_s_own_and_says_nothing() -> None:
    class Toy:
        name, revision, dimensions = "toy", "r1", 4

        def embed(self, texts: Any) -> Any:
            raise AssertionError

    mute = Mute(Toy())
    assert (mute.name, mute.revision, mute.dimensions) == ("toy", "r1", 4)
    made = mute.embed(["a", "b"])
    assert made.shape == (2, 4)
    assert made.dtype == np.float32
    assert not made.any()


def asked(name: str, evidence: int, *found: int) -> Asked:
    question = Question.model_validate({"question_id": name, "scope": "s", "text": "?"})
    at = tuple(
        AtBudget(budget, Got(budget, hits, None), 1, 0.0, 0, 0, {})
        for budget, hits in zip((64, 128), found, strict=True)
    )
    return Asked(question, tuple(range(1, evidence + 1)), at)


def test_a_report_has_what_is_found_without_a_part_and_the_difference_to_the_model() -> None:
    questions = (asked("a", 2, 1, 2), asked("b", 1, 1, 1), asked("nothing", 0, 0, 0))
    run = Run("c", "toy", Settings(), (), questions, ablated=(Ablated("leg: x", ((0, 2), (1, 0), (0, 0))),))
    (cells,) = report(run)["ablations"].values()
    assert cells == {
        "64": {
            "evidence_recall": 0.5,
            "all_evidence": 0.5,
            "difference": {"evidence_recall": -0.25, "all_evidence": 0.0},
        },
        "128": {
            "evidence_recall": 0.5,
            "all_evidence": 0.5,
            "difference": {"evidence_recall": -0.5, "all_evidence": -0.5},
        },
    }
    assert report(run)["budgets"]["64"]["evidence_recall"] == 0.75
    assert {"ablations", "together"}.isdisjoint(report(Run("c", "toy", Settings(), (), questions)))


def test_shares_are_over_the_questions_that_have_evidence_or_an_answer() -> None:
    got = [Got(1, 1, True), Got(1, 0, False), Got(0, 0, None)]
    assert recall([2, 0, 1], [1, 0, 0]) == {"evidence_recall": 0.25, "all_evidence": 0.0}
    assert quality([2, 0, 1], got)["answer_in_context"] == 0.5
    assert (quality([2, 0, 1], got)["questions"], quality([2, 0, 1], got)["answers"]) == (2, 2)
    assert recall([0], [0]) == {"evidence_recall": None, "all_evidence": None}


def test_auto_is_tried_once_for_each_share() -> None:
    grid = Grid((512,), (0.4,), ("chunk", "auto"), (0.3, 0.5))
    assert list(grid.ways()) == [
        ("chunk", "chunk", 1.0),
        ("auto 0.3", "auto", 0.3),
        ("auto 0.5", "auto", 0.5),
    ]
    assert [part(512, share) for share in (0.3, 1.0)] == [153, 512]
    assert part(1, 0.1) == 1


@pytest.mark.parametrize("text", ["", "0", "x", "1.1", "nan", "0.4,0.4", "-1", "0.4,"])
def test_a_list_that_is_no_shares_is_refused_by_its_option(text: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        shares_of(text, "--max-fracs")
    assert refused.value.param_hint == "--max-fracs"


def test_lists_are_read_in_order_and_units_in_their_own() -> None:
    assert shares_of("1,0.4, 0.2", "--max-fracs") == (1.0, 0.4, 0.2)
    assert budgets_of("6000,512") == (6000, 512)
    assert units_of("auto,chunk", "--units") == ("chunk", "auto")
    assert units_of("none", "--units") == ()
