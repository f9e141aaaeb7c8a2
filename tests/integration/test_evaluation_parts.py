"""Ablations, pooled corpora, sweeps and profiles on a real server, on the project's own corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner import Planner, Settings
from planner.errors import RequestError
from planner.evaluation.ablation import ABLATIONS, LEGS, TERMS, Without
from planner.evaluation.asking import planned
from planner.evaluation.corpora import read_corpus
from planner.evaluation.measure import measure, measure_together
from planner.evaluation.repack import Pool
from planner.evaluation.runner import evaluate, filled, silent, unbound
from planner.evaluation.sweep import Grid, sweep
from planner.evaluation.together import together

OWN = read_corpus(Path(__file__).parents[1] / "corpus")
V2 = Settings(score_model="v2", plan_model="v2")


@pytest.fixture(scope="module")
def filled_planner(server_url: str) -> Iterator[Planner]:
    """Give a planner on a scratch database that holds the project's own corpus."""
    with filled((OWN,), server_url, V2, silent) as planner:
        yield planner


@pytest.mark.parametrize("model", ["v1", "v2"])
def test_a_pool_packed_again_is_the_plan_that_planning_again_makes(
    filled_planner: Planner, model: Any
) -> None:
    settings = Settings(score_model=model, plan_model=model)
    for question in OWN.questions[:6]:
        pool = Pool.of(planned(unbound(filled_planner, settings), question, 512), settings)
        for budget, cap in ((64, 0.4), (300, 0.1), (512, 1.0), (2_048, 0.4)):
            under = settings.model_copy(update={"max_frac_per_source": cap})
            again = planned(unbound(filled_planner, under), question, budget)
            packed = pool.packed(budget, cap)
            assert (packed.plan_hash, packed.pool_hash) == (again.plan_hash, again.pool_hash)
            assert (packed.budget, packed.used, packed.stats) == (again.budget, again.used, again.stats)
            asking = unbound(filled_planner, under)
            bundles = [asking.deliver(plan, "window", budget_tokens=1_000) for plan in (packed, again)]
            assert bundles[0].delivery_hash == bundles[1].delivery_hash


@pytest.mark.parametrize("name", ABLATIONS)
def test_a_part_that_is_left_out_takes_no_part(filled_planner: Planner, name: str) -> None:
    planner = unbound(filled_planner, V2)
    question = next(one for one in OWN.questions if one.category == "multi-hop")
    full = planned(planner, question, 512)
    with ExitStack() as held:
        plan = Without(planner, name, held).plan(question, 512)
    assert (full.request["hops"], full.request["text"]) == (2, question.text)
    assert full.recall["semantic"]["kept"] > 0 < full.recall["lexical"]["returned"]
    assert plan.budget == full.budget
    if name in LEGS:
        assert (plan.recall["semantic"]["kept"] == 0) == (name == "leg: semantic")
        assert (plan.recall["lexical"]["returned"] == 0) == (name == "leg: lexical")
        assert (plan.request["hops"] == 0) == (name == "leg: expansion")
        assert plan.recall["weights"] == full.recall["weights"]
    else:
        weights = dict(zip(plan.recall["terms"]["names"], plan.recall["terms"]["weights"], strict=True))
        assert {term for term, weight in weights.items() if not weight} == set(TERMS[name])


def test_ablations_differ_from_the_model_and_from_run_to_run_in_nothing(server_url: str) -> None:
    how: dict[str, Any] = {"budgets": (64, 256), "limit": 8, "ablate": True}
    twice = [measure(OWN, server_url, [V2], **how)[0] for _ in range(2)]
    for report in twice:
        for document in (report, report["specified"]):
            document.pop("latency_ms")
    assert twice[0] == twice[1]
    report = twice[0]
    assert "ablations" not in report["specified"]  # v1 has no parts
    assert list(report["ablations"]) == list(ABLATIONS)
    differing = 0
    for cells in report["ablations"].values():
        for budget, cell in report["budgets"].items():
            for metric, difference in cells[budget]["difference"].items():
                assert cells[budget][metric] - cell[metric] == pytest.approx(difference, abs=1e-5)
                differing += difference != 0
    assert differing


def test_corpora_in_one_scope_are_reported_each_and_searched_as_one(server_url: str) -> None:
    mill, other = (
        replace(OWN, name=name, questions=OWN.questions[:n]) for name, n in (("mill", 6), ("other", 1))
    )
    how: dict[str, Any] = {"budgets": (2_048,), "specified": False}
    mine, others = measure_together(together([mill, other]), server_url, [V2], **how)
    assert (mine["corpus"], others["corpus"]) == ("mill", "other")
    assert mine["together"] == others["together"] == ["mill", "other"]
    assert (mine["asked"], others["asked"]) == (6, 1)
    (alone,) = measure(OWN, server_url, [V2], limit=6, **how)
    assert "together" not in alone
    assert mine["results"].keys() == alone["results"].keys()
    assert mine["results"] != alone["results"]  # every text is there twice
    assert mine["budgets"]["2048"]["evidence_recall"] > 0.5


def test_a_sweep_says_of_the_cap_and_the_units_in_force_what_a_run_says(server_url: str) -> None:
    budgets, shares = (128, 512), (0.3, V2.chunk_share)
    grid = Grid(budgets, (0.2, V2.max_frac_per_source, 1.0), ("chunk", "window", "record", "auto"), shares)
    seen: list[tuple[str, int, int]] = []
    twice = [
        sweep(OWN, server_url, V2, grid, limit=7, progress=lambda *said: seen.append(said)) for _ in range(2)
    ]
    assert json.dumps(twice[0]) == json.dumps(twice[1])
    assert seen[-1] == ("mill: caps and units", 7, 7)
    swept = twice[0]
    (report,) = measure(OWN, server_url, [V2], budgets=budgets, units=grid.units, limit=7, specified=False)
    for budget, cell in report["budgets"].items():
        at_cap = swept["caps"]["0.4"][budget]
        assert at_cap == {name: cell[name] for name in at_cap}
        for unit, bundle in cell["delivered"].items():
            assert swept["units"][f"auto {V2.chunk_share:g}" if unit == "auto" else unit][budget] == bundle
    assert list(swept["caps"]) == ["0.2", "0.4", "1"]
    assert list(swept["units"]) == ["chunk", "window", "record", "auto 0.3", "auto 0.7"]
    assert swept["caps"]["0.2"] != swept["caps"]["1"]


def test_the_run_of_one_corpus_is_that_of_several_with_one(server_url: str) -> None:
    (run,) = evaluate(OWN, server_url, [V2], budgets=(64,), limit=1)
    assert (run.together, run.ablated) == ((), ())


def test_a_profile_of_a_request_is_in_force_recorded_and_made_again(filled_planner: Planner) -> None:
    operators = V2.model_copy(update={"profile": "document", "max_frac_per_source": 1.0})
    planner = Planner(replace(filled_planner.engine, settings=operators))
    asked: dict[str, Any] = {"scope": OWN.questions[0].scope, "text": OWN.questions[0].text}
    wide = planner.plan({**asked, "budget_tokens": 100})
    narrow = planner.plan({**asked, "budget_tokens": 100, "profile": "diverse"})
    assert (wide.budget.cap, narrow.budget.cap) == (90, 36)
    assert (wide.request["profile"], narrow.request["profile"]) == (None, "diverse")
    assert planner.replay(narrow.ref).plan_hash == narrow.plan_hash
    again = planner.replan(narrow.ref)
    assert (again.identical, again.notes) == (True, ())
    would = planner.whatif({"max_frac_per_source": 1.0}, plans=[narrow.ref])
    assert [change.plan_hash[0] for change in would.changed] in ([], [narrow.plan_hash])
    diverse = Planner(replace(filled_planner.engine, settings=V2))
    with pytest.raises(RequestError, match="profile = 'document' lets one source take 1 of a plan"):
        diverse.plan({**asked, "profile": "document"})
    (drift,) = diverse.replan(wide.ref).drifts
    assert "max_frac_per_source was 1.0, is 0.4" in str(drift)
