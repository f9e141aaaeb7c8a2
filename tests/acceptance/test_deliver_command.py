"""`planner deliver` and `planner context`: the bundle byte for byte, its JSON, its refusals, its trace."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest

from planner import Planner
from planner.tokens import counter
from tests.acceptance.running import SCOPE, Cli

QUESTION = "At what forecast level does the storm gate close?"
UNITS = ("chunk", "window", "record", "auto")


def test_the_text_alone_goes_to_standard_output(corpus: Cli, planned: str) -> None:
    data = corpus("deliver", planned, "--unit", "window", "--budget", "700", "--json").json
    ran = corpus("deliver", planned, "--unit", "window", "--budget", "700")
    assert (ran.code, ran.out, ran.err) == (0, data["text"], "")
    assert counter("utf8-script-v1", {}).count(ran.out) == data["used"] <= 700


@pytest.mark.parametrize("unit", UNITS)
def test_json_says_what_is_in_the_text_and_where(corpus: Cli, planned: str, unit: str) -> None:
    data = corpus("deliver", planned, "--unit", unit, "--budget", "700", "--json").json
    assert (data["plan"], data["unit"], data["budget"]) == (planned, unit, 700)
    text = data["text"].encode()
    assert data["items"]
    for item in data["items"]:
        assert text[item["start"] : item["end"]].decode().strip()
        assert "@" in item["ref"]
    assert len(data["delivery_hash"]) == 64


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        (("--budget", "900"), "budget", 900),
        (("--counter", "openai:o200k_base"), "counter", "openai:o200k_base"),
        (("--neighbours", "3"), "neighbours", 3),
        (("--on-misfit", "cut"), "on_misfit", "cut"),
        (("--max-frac", "0.5"), "max_frac", 0.5),
        (("--set", "unit=record", "--budget", "900"), "unit", "record"),
        (("--set", "max_budget=150"), "budget", 150),
    ],
    ids=str,
)
def test_options_reach_the_delivery(
    corpus: Cli, planned: str, options: tuple[str, ...], field: str, value: object
) -> None:
    for command in (("deliver", planned), ("context", SCOPE, QUESTION)):
        data = corpus(*command, *options, "--json").json
        assert {**data, **data["options"]}[field] == value


def test_a_question_is_answered_with_a_bundle_within_the_budget(corpus: Cli) -> None:
    options = ("--unit", "auto", "--budget", "900", "--min-score", "0.5", "--counter", "openai:o200k_base")
    data = corpus("context", SCOPE, QUESTION, *options, "--json").json
    ran = corpus("context", SCOPE, QUESTION, *options)
    assert counter("openai:o200k_base", {}).count(ran.out) <= 900
    assert ran.out.splitlines()[1:-1] != []
    plan = corpus("show", data["plan"], "--json").json
    assert (plan["budget_requested"], plan["request"]["min_score"]) == (630, 0.5)
    assert [kept["delivery_id"] for kept in plan["deliveries"]] == [data["delivery_id"]]


@pytest.mark.parametrize("unit", UNITS)
def test_what_does_not_fit_is_exit_4_with_a_budget_that_suffices_on_stderr(
    corpus: Cli, planned: str, unit: str
) -> None:
    for command in (("deliver", planned), ("context", SCOPE, QUESTION)):
        refused = corpus(*command, "--unit", unit, "--budget", "20", "--json")
        assert (refused.code, refused.out, refused.problem["reason"]) == (4, "", "nothing_fits")
        enough = str(refused.problem["sufficient_budget"])
        said = corpus(*command, "--unit", unit, "--budget", "20")
        assert (said.code, said.out, f"a budget of {enough} would do" in said.err) == (4, "", True)
        assert corpus(*command, "--unit", unit, "--budget", enough, "--json").json["items"]


def test_a_plan_that_was_refused_cannot_be_delivered(corpus: Cli) -> None:
    refused = corpus("plan", SCOPE, QUESTION, "--budget", "1", "--json").problem
    ran = corpus("deliver", refused["plan"], "--json")
    assert (ran.code, ran.out, ran.problem["sufficient_budget"]) == (4, "", refused["sufficient_budget"])
    assert "was refused, so there is nothing to deliver" in ran.problem["detail"]


def test_show_lists_what_was_delivered_and_why_tells_what_was_not(corpus: Cli) -> None:
    plan = corpus("plan", SCOPE, QUESTION, "--budget", "300", "--json").json
    data = corpus("deliver", plan["plan"], "--budget", "150", "--json").json
    assert data["skipped"]
    line = f"delivery {data['delivery_id']}: chunk, {data['used']} of 150 tokens by utf8-script-v1; "
    counts = f"{len(data['items'])} pieces, {len(data['skipped'])} skipped, 0 cut"
    assert line + counts in corpus("show", plan["plan"]).out
    ran = corpus("why", plan["plan"], data["skipped"][0]["ref"])
    assert "not delivered" in ran.out
    assert data["delivery_id"] in " ".join(ran.out.split())


HOSTILE = "Pump \x1b[31mred\x1b[0m \u202egnp.exe [bold]日本[/bold] runs"


@pytest.fixture
def hostile(cli: Cli, database_url: str) -> tuple[str, str]:
    """Give a database and a plan of a text that would do something to a terminal."""
    with Planner.connect(database_url) as planner:
        planner.ingest_text("s", "a.txt", HOSTILE)
        return database_url, str(planner.plan("s", "Which pump runs?").ref)


def test_stored_text_is_printed_verbatim_but_to_a_terminal(cli: Cli, hostile: tuple[str, str]) -> None:
    url, plan = hostile
    ran = cli("deliver", plan, "--database-url", url)
    assert HOSTILE in ran.out
    run = "import sys; from planner.surfaces.cli import main; sys.exit(main(sys.argv[1:]))"
    ours, theirs = pty.openpty()
    command: list[Any] = [sys.executable, "-c", run, "deliver", plan, "--database-url", url]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(theirs)
    seen = os.read(ours, 65_536).decode()
    os.close(ours)
    assert (done.returncode, done.stderr) == (0, b"")
    assert r"Pump \x1b[31mred\x1b[0m \u202egnp.exe [bold]日本[/bold] runs" in seen
    assert not {"\x1b", "\u202e"} & set(seen)
    data = json.loads(cli("deliver", plan, "--database-url", url, "--json").out)
    assert HOSTILE in data["text"]
