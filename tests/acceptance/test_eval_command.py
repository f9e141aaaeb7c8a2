"""`planner eval` and `planner expect` as an operator and CI run them; the page about them is true."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.running import Cli

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "tests" / "corpus"
PAGE = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
GATE = re.search(r"`planner (eval run .*?baseline\.json)` writes", PAGE, re.DOTALL)


@pytest.fixture
def evaluating(cli: Cli, server_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command that makes its scratch databases on the server under test."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", server_url)
    return cli


@pytest.fixture
def in_checkout(evaluating: Cli, tmp_path: Path) -> Cli:
    """Run a command in a folder that has the project's own corpus where the page says."""
    shutil.copytree(OWN, tmp_path / "tests" / "corpus")
    return evaluating


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line.removeprefix("$ planner ")) for line in text.splitlines()]


def test_the_evidence_has_not_fallen_below_the_committed_baseline(evaluating: Cli, tmp_path: Path) -> None:
    assert GATE is not None
    arguments = GATE[1].split()
    arguments[arguments.index("tests/corpus")] = str(OWN)
    arguments[-1] = str(tmp_path / "report.json")
    ran = evaluating(*arguments)
    assert (ran.code, ran.err) == (0, "")
    checked = evaluating("eval", "check", tmp_path / "report.json", "--baseline", OWN / "baseline.json")
    assert checked.code == 0, checked.out
    assert "0 of " in checked.out


def test_a_worse_report_ends_with_1_and_names_what_fell_and_which_question(
    evaluating: Cli, tmp_path: Path
) -> None:
    baseline = json.loads((OWN / "baseline.json").read_text(encoding="utf-8"))
    name = next(name for name, result in baseline["results"].items() if result["found"][-1])
    baseline["results"][name]["found"][-1] = 0
    (last,) = list(baseline["budgets"])[-1:]
    baseline["budgets"][last]["all_evidence"] -= 0.03
    (tmp_path / "worse.json").write_text(json.dumps(baseline), encoding="utf-8")
    check = ("eval", "check", tmp_path / "worse.json", "--baseline", OWN / "baseline.json")
    ran = evaluating(*check)
    assert ran.code == 1
    assert f"all_evidence at {last}" in ran.out
    assert name in ran.out
    assert evaluating(*check, "--tolerance", "0.05").code == 0
    assert evaluating(*check, "--tolerance", "all_evidence=0.05").code == 0
    as_json = json.loads(evaluating(*check, "--json").out)
    assert [fall["figure"] for fall in as_json["falls"]] == [f"all_evidence at {last}"]
    assert as_json["worse"][0]["question"] == name


def test_the_commands_of_the_page_run(in_checkout: Cli) -> None:
    said = [command for block in blocks("console") for command in commands(block)]
    evaluations = [command for command in said if command[0] == "eval"]
    assert [command[1] for command in evaluations] == [
        "run",
        "run",
        "compare",
        "check",
        "run",
        "sweep",
        "fit",
    ]
    printed = []
    for command in evaluations:
        ran = in_checkout(*command)
        assert (ran.code, ran.err) == (0, "")
        printed.append(ran.out)
    assert printed[0].startswith("mill, wordllama: score_model")
    assert "recall@5" in printed[0]
    assert "B - A" in printed[2]


def test_the_commands_about_expectations_run(corpus: Cli, planned: str) -> None:
    (block,) = (block for block in blocks("console") if "planner expect" in block)
    added, listed, checked = commands(block)
    scope = planned.partition(":")[0]
    ran = corpus(*(planned if word == "PLAN" else word for word in added))
    assert ran.code == 0
    name = ran.out.partition(" ")[0].rstrip(":")
    assert name in corpus(*(scope if word == "demo" else word for word in listed)).out
    ran = corpus(*(scope if word == "demo" else word for word in checked))
    assert ran.code == 1  # the plan has too small a budget for it
    assert f"{name}  fell: " in ran.out
    assert "note: asked in May" in ran.out
    (one,) = json.loads(corpus("expect", "check", "--scope", scope, "--json").out)["expectations"]
    assert (one["expectation"], one["held"]) == (name, False)
    assert corpus("show", one["plan_now"]).code == 0
    assert corpus("expect", "remove", name).code == 0
    assert corpus("expect", "check", "--scope", scope).out == "0 of 0 expectations hold\n"
    assert corpus("expect", "remove", name, "--json").problem["code"] == "not_found"


def test_an_expectation_needs_no_add_and_bad_words_are_usage(corpus: Cli, planned: str) -> None:
    told = [corpus("expect", *add, planned, "storm gate", "--json").json for add in ([], ["add"])]
    assert told[0] == told[1]
    assert corpus("expect", "remove", told[0]["expectation"], "--json").json == {
        "removed": told[0]["expectation"]
    }
    assert corpus("expect", planned, "no such thing at all", "--json").problem["code"] == "request.invalid"
    for wrong in (["expect"], ["expect", "chek"], ["expect", planned], ["expect", "remove", "x"]):
        assert corpus(*wrong, "--json").code == 2
    assert "list" in corpus("expect", "--help").out


def test_the_example_in_python_runs(in_checkout: Cli, server_url: str, tmp_path: Path) -> None:
    (example,) = blocks("python")
    code = f"url = {server_url!r}\n{example}"
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path, check=False)
    assert (ran.returncode, ran.stdout) == (0, "mill ['512'] 5\n"), ran.stderr


def test_the_report_goes_to_stdout_alone_and_variants_make_a_list(evaluating: Cli) -> None:
    run = ("eval", "run", OWN, "--unit", "none", "--budgets", "64", "--limit", "2", "--json", "-")
    several = json.loads(evaluating(*run, "--max-frac", "0.4,1").out)
    assert [report["max_frac"] for report in several] == [0.4, 1.0]
    one = json.loads(evaluating(*run, "--set", "max_frac_per_source=0.5").out)
    assert (one["max_frac"], one["specified"]["max_frac"], one["asked"]) == (0.5, 0.4, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budgets", "512,x"], "--budgets"),
        (["--budgets", "0"], "1 token or more"),
        (["--budgets", "64,64"], "different budgets"),
        (["--unit", "page"], "'page' is not one of chunk, window, record, auto, all, none"),
        (["--max-frac", "2"], "max_frac_per_source"),
        (["--score-model", "v0"], "score_model"),
        (["--plan-model", ""], "plan_model"),
        (["--json", "no/such/folder/r.json"], "cannot be written"),
        (["--limit", "0"], "--limit"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_the_work(
    evaluating: Cli, arguments: list[str], said: str
) -> None:
    ran = evaluating("eval", "run", OWN, *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("run", "nowhere"), 1),
        (("run",), 2),
        (("compare", "nowhere.json", "nowhere.json"), 1),
        (("check", "nowhere.json"), 2),
        (("check", "nowhere.json", "--baseline", "nowhere.json"), 1),
        (("check", "nowhere.json", "--baseline", "nowhere.json", "--tolerance", "2"), 2),
        (("check", "nowhere.json", "--baseline", "nowhere.json", "--tolerance", "beauty=0.1"), 2),
        ((), 2),
    ],
)
def test_bad_input_is_a_message_not_a_traceback(
    evaluating: Cli, arguments: tuple[str, ...], code: int
) -> None:
    ran = evaluating("eval", *arguments)
    assert ran.code == code
    assert ran.err


@pytest.mark.corpus
def test_shared_corpora_are_measured(
    evaluating: Cli, shared_corpus: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    found = [path.parent for path in shared_corpus(".").glob("*/sources.jsonl")]
    smallest = sorted(found, key=lambda folder: (folder / "sources.jsonl").stat().st_size)[:2]
    ran = evaluating("eval", "run", *smallest, "--limit", "10", "--unit", "none", "--json", "-")
    reports: list[dict[str, Any]] = json.loads(ran.out)
    assert [report["asked"] for report in reports] == [10, 10]
    for report in reports:
        assert list(report["budgets"]) == ["512", "1024", "2048", "4096", "6000"]
        recalls = [cell["evidence_recall"] for cell in report["budgets"].values()]
        assert recalls[-1] > 0
        assert all(cell["utilisation"] <= 1 for cell in report["budgets"].values())
        with capfd.disabled():
            sys.stdout.write(f"\n{report['corpus']}: evidence recall {recalls}\n")
