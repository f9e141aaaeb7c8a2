"""`planner eval fit` as an operator runs it: figures on stdout, a file that plans can score by."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.running import Cli

OWN = Path(__file__).resolve().parents[1] / "corpus"
FEW = ("--budgets", "64,256", "--limit", "8")


@pytest.fixture
def evaluating(cli: Cli, server_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command that makes its scratch databases on the server under test."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", server_url)
    return cli


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """Give the same corpus under another name."""
    folder = tmp_path / "other"
    shutil.copytree(OWN, folder)
    (folder / "corpus.json").write_text('{"name": "other"}', encoding="utf-8")
    return folder


def test_a_file_is_written_that_evaluations_and_plans_take(
    evaluating: Cli, tmp_path: Path, named: Path
) -> None:
    out, report = tmp_path / "weights.json", tmp_path / "report.json"
    fit = ("eval", "fit", OWN, named, *FEW, "--out", out, "--version", "mill/1")
    ran = evaluating(*fit, "--json", report)
    assert (ran.code, ran.err) == (0, "")
    for part in ("mill, wordllama: 8 questions", "cosine", "rank fusion", "min-max sum", "fitted without it"):
        assert part in ran.out
    assert "weights in sixteenths: cos " in ran.out
    file, said = (json.loads(path.read_text(encoding="utf-8")) for path in (out, report))
    assert (file["version"], file["weights"]) == ("mill/1", said["weights"])
    assert set(file["fitted"]) >= {"program", "rounds", "started_from", "mill, wordllama", "other, wordllama"}
    assert [one["corpus"] for one in said["corpora"]] == ["mill", "other"]
    assert said["corpora"][0]["left_out"]["weights"].keys() == file["weights"].keys()
    models = ("--score-model", "v2", "--plan-model", "v2", "--max-frac", "1", "--skip-specified")
    run = ("eval", "run", OWN, *models, "--unit", "none", "--budgets", "64,256", "--limit", "8")
    with_it = json.loads(evaluating(*run, "--set", f"score_weights={out}", "--json", "-").out)
    figures = said["corpora"][0]["figures"]["score_model v2"]
    for budget, cell in with_it["budgets"].items():
        assert {name: cell[name] for name in figures[budget]} == figures[budget]


def test_the_report_goes_to_stdout_alone(evaluating: Cli, tmp_path: Path) -> None:
    fit = ("eval", "fit", OWN, *FEW, "--rounds", "1", "--out", tmp_path / "w.json", "--json", "-")
    ran = evaluating(*fit)
    assert (ran.code, ran.err) == (0, "")
    said = json.loads(ran.out)
    assert (said["rounds"], said["corpora"][0]["left_out"]) == (1, None)


def test_what_cannot_be_fitted_is_a_message_and_leaves_no_file(
    evaluating: Cli, tmp_path: Path, named: Path
) -> None:
    questions = (named / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [json.dumps({**json.loads(line), "evidence": []}) for line in questions]
    (named / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "weights.json"
    for arguments, code, said in (
        ([tmp_path / "nowhere"], 1, "cannot be read"),
        ([named], 1, "corpus 'other' has no question whose evidence is labelled"),
        ([OWN, OWN], 2, "each must have a name of its own"),
        ([OWN, "--version", "two words"], 2, "two words"),
        ([OWN, "--embedder", ""], 1, "embedder"),
        ([OWN, "--rounds", "0"], 2, "--rounds"),
        ([OWN, "--budgets", "0"], 2, "--budgets"),
        ([OWN, "--out", tmp_path / "no" / "such.json"], 2, "--out"),
        ([OWN, "--set", f"score_weights={tmp_path / 'none.json'}"], 1, "score_weights"),
        ([], 2, "CORPUS_DIR"),
    ):
        ran = evaluating("eval", "fit", *arguments, *([] if "--out" in arguments else ["--out", out]))
        assert (ran.code, ran.out) == (code, ""), arguments
        assert said in ran.err
        assert not out.exists()
    ran = evaluating("eval", "fit", named, "--out", out, "--json", "-")
    assert ran.problem["code"] == "ingest.malformed"


def test_plans_are_asked_for_by_a_bad_file_of_weights(corpus: Cli, tmp_path: Path, planned: str) -> None:
    (tmp_path / "bad.json").write_text('{"version": "x"}', encoding="utf-8")
    scope = planned.partition(":")[0]
    bad = ("--set", "score_model=v2", "--set", f"score_weights={tmp_path / 'bad.json'}")
    ran = corpus("plan", scope, "Where is the storm gate?", *bad, "--json")
    assert ran.code == 1
    assert ran.problem["code"] == "settings.invalid"
    assert "per: Field required" in ran.problem["detail"]
