"""`planner eval sweep`, `eval run --ablate` and `--together`, and `--profile`, as an operator runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.running import Cli

OWN = Path(__file__).resolve().parents[1] / "corpus"
V2 = ("--set", "score_model=v2", "--set", "plan_model=v2")
FEW = ("--budgets", "96,300", "--limit", "4")


@pytest.fixture
def evaluating(cli: Cli, server_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command that makes its scratch databases on the server under test."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", server_url)
    return cli


def test_a_sweep_prints_curves_and_its_json_is_the_same_every_time(evaluating: Cli, tmp_path: Path) -> None:
    file = tmp_path / "sweep.json"
    sweep = ("eval", "sweep", OWN, *FEW, *V2, "--max-fracs", "0.3,1", "--chunk-shares", "0.5")
    shown = evaluating(*sweep, "--json", file)
    assert (shown.code, shown.err) == (0, "")
    for part in (
        "mill, wordllama: score_model v2",
        "selected under cap",
        "sources under cap",
        "auto 0.5",
        "█",
    ):
        assert part in shown.out
    again = evaluating(*sweep, "--json", "-")
    assert again.out == file.read_text(encoding="utf-8")
    document = json.loads(again.out)
    assert (document["corpus"], document["asked"], document["max_frac"]) == ("mill", 4, 0.4)
    assert list(document["caps"]) == ["0.3", "1"]
    assert list(document["units"]) == ["chunk", "window", "record", "auto 0.5"]
    for cells in (*document["caps"].values(), *document["units"].values()):
        assert list(cells) == ["96", "300"]
    assert {"evidence_recall", "distinct_sources"} <= document["caps"]["1"]["96"].keys()
    assert {"evidence_recall", "answer_in_context"} <= document["units"]["chunk"]["96"].keys()


def test_a_sweep_without_units_delivers_nothing(evaluating: Cli) -> None:
    sweep = ("eval", "sweep", OWN, *FEW, "--units", "none")
    assert "by unit" not in evaluating(*sweep).out
    assert json.loads(evaluating(*sweep, "--json", "-").out)["units"] == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-fracs", "0.4,x"], "--max-fracs"),
        (["--max-fracs", "0"], "above 0, up to 1"),
        (["--max-fracs", "0.4,0.4"], "different shares"),
        (["--chunk-shares", "2"], "--chunk-shares"),
        (["--units", "page"], "'page' is not one of chunk, window, record, auto, all, none"),
        (["--budgets", ""], "--budgets"),
        (["--limit", "0"], "--limit"),
        (["--json", "no/such/folder/r.json"], "cannot be written"),
        (["--set", "profile=wide"], "profile"),
    ],
)
def test_what_cannot_be_swept_is_refused_before_the_work(
    evaluating: Cli, arguments: list[str], said: str
) -> None:
    ran = evaluating("eval", "sweep", OWN, *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def test_a_run_says_what_each_part_is_good_for_where_the_model_has_parts(evaluating: Cli) -> None:
    run = ("eval", "run", OWN, "--unit", "none", "--skip-specified", "--ablate", *FEW)
    refused = evaluating(*run, "--score-model", "v1")
    assert refused.code == 2
    assert "needs score_model v2" in refused.err
    assert evaluating(*run, "--score-model", "v1,v2").code == 2
    shown = evaluating(*run)
    assert (shown.code, shown.err) == (0, "")
    assert "leg: semantic" in shown.out
    assert "terms: feedback" in shown.out
    ablations = json.loads(evaluating(*run, "--json", "-").out)["ablations"]
    assert len(ablations) == 12
    for cells in ablations.values():
        assert list(cells) == ["96", "300"]
        assert cells["96"].keys() == {"evidence_recall", "all_evidence", "difference"}


def test_corpora_are_put_together_and_reported_each(evaluating: Cli, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(OWN, copy)
    run = ("eval", "run", OWN, copy, "--unit", "none", "--skip-specified", "--together", *FEW)
    refused = evaluating(*run)
    assert refused.code != 0
    assert "two corpora are named 'mill'" in refused.err
    (copy / "corpus.json").write_text('{"name": "copy"}', encoding="utf-8")
    assert "mill, wordllama: score_model v2, plan_model v2, " in (shown := evaluating(*run).out)
    assert "4 questions, in one scope with copy" in shown
    reports = json.loads(evaluating(*run, "--json", "-").out)
    assert [report["corpus"] for report in reports] == ["mill", "copy"]
    assert all(report["together"] == ["mill", "copy"] for report in reports)


def test_a_profile_is_shown_and_narrows_a_plan_and_does_not_widen_one(corpus: Cli) -> None:
    shown = corpus("config", "--set", "profile=document", "--json").json
    assert shown["max_frac_per_source"] == {"value": 1.0, "origin": "profile document"}
    assert shown["profile"] == {"value": "document", "origin": "argument"}
    ask = ("plan", "cli", "When does the storm gate close?", "--budget", "200", "--json")
    wide = corpus(*ask, "--set", "profile=document").json
    narrow = corpus(*ask, "--set", "profile=document", "--profile", "diverse").json
    assert (wide["budget"], wide["cap"], narrow["cap"]) == (180, 180, 72)
    assert corpus(*ask, "--profile", "diverse").json["plan_hash"] == narrow["plan_hash"]
    problem = corpus(*ask, "--profile", "document").problem
    assert (problem["code"], problem["field"]) == ("request.invalid", "profile")
    assert corpus(*ask, "--profile", "wide").problem["field"] == "profile"
    delivered = corpus("context", "cli", "When does the storm gate close?", "--profile", "diverse", "--json")
    assert delivered.code == 0
