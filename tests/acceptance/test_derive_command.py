"""`planner derive` and `planner verify citation`, and how plans show derived text."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from planner import Planner
from tests.acceptance.running import Cli

SUMMARY = "The gate closes at ten."
OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


@pytest.fixture
def own(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the span of a note in a database of the test's own, which the environment names."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    with Planner.connect(database_url) as planner:
        planner.ingest_text("s", "note.txt", "By night, the storm gate\nof the harbour closes at ten sharp.")
        return str(planner.source("s", "note.txt").spans[0].ref)


def test_a_summary_is_stored_from_the_argument_and_from_standard_input(cli: Cli, own: str) -> None:
    told = cli("derive", "s", SUMMARY, "--from", own, "--json").json
    (source,) = told["sources"]
    assert (source["status"], source["version_tx"]) == ("new", 2)
    assert source["source_id"].startswith("summary-")
    piped = cli("derive", "s", "--from", own, "--json", stdin=f"{SUMMARY}\n".encode()).json
    assert piped["sources"][0] == {**source, "version_tx": 3, "status": "changed"}  # with its newline
    named = cli(
        *("derive", "s", "-", "--from", own, "--id", "sum.md", "--title", "Gate", "--kind", "gist"),
        *("--attr", "team=sea", "--actor", "writer"),
        stdin=SUMMARY.encode(),
    )
    assert (named.code, "sum.md" in named.out, "1 sources in s, 0 failed" in named.out) == (0, True, True)
    shown = cli("source", "show", "s", "sum.md", "--json").json
    assert (shown["class"], shown["title"], shown["actor"]) == ("cache", "Gate", "writer")
    assert shown["attributes"] == {"team": "sea", "kind": "gist"}


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ((SUMMARY,), 2, "usage"),
        ((SUMMARY, "--from", "note.txt"), 2, "request.invalid"),
        ((SUMMARY, "--from", "note.txt@1:0-5"), 1, "not_found.span"),
        ((SUMMARY, "--from", "note.txt@1:0-60", "--kind", "A Summary"), 2, "request.invalid"),
        ((SUMMARY, "--from", "note.txt@1:0-60", "--id", "note.txt"), 1, "ingest.conflict"),
        ((" ", "--from", "note.txt@1:0-60"), 1, "ingest.empty"),
        (("--from", "note.txt@1:0-60"), 1, "ingest.empty"),
    ],
)
def test_what_cannot_be_derived_is_said(
    cli: Cli, own: str, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    assert own == "note.txt@1:0-60"
    ran = cli("derive", "s", *arguments, "--json")
    assert (ran.code, ran.problem["code"]) == (code, problem)


def test_plans_show_derived_text_and_say_when_it_was_stale(cli: Cli, own: str, database_url: str) -> None:
    asked = ("plan", "s", "When does the gate close?")
    options = ("--set", "max_frac_per_source=1.0")
    cli("derive", "s", SUMMARY, "--from", own, "--id", "sum")
    assert "paragraph, cache, weight" in cli(*asked, *options).out
    fresh = cli(*asked, *options, "--json").json
    assert fresh["recall"]["stale"] == []
    with Planner.connect(database_url) as planner:
        planner.ingest_text("s", "note.txt", "The gate is gone.")
    assert "paragraph, stale cache, weight" in cli(*asked, *options).out
    plan = cli(*asked, *options, "--json").json
    assert plan["recall"]["stale"] == ["sum@2:0-23"]
    shown = cli("show", plan["plan"]).out
    assert "paragraph, stale cache" in shown
    assert "what it was made from had a newer version by then, or was withdrawn or erased" in " ".join(
        shown.split()
    )
    assert "stale" not in cli("show", fresh["plan"]).out
    said = " ".join(cli("why", plan["plan"], "sum").out.split())
    assert "It is derived text and was stale: what it was made from had a newer version" in said


def test_a_citation_ends_with_0_where_the_evidence_says_it_and_with_1_where_not(cli: Cli, own: str) -> None:
    plan = cli("plan", "s", "When does the gate close?", "--set", "max_frac_per_source=1.0", "--json").json
    ref = plan["plan"]
    ran = cli("verify", "citation", ref, "E1", "the storm gate of the harbour")
    assert (ran.code, ran.out) == (0, f"The quote is in E1 ({own}), at note.txt@1:10-39.\n")
    told = cli("verify", "citation", ref, own, "gate\tof", "--json").json
    assert (told["verdict"], told["found"]) == ("supported", "note.txt@1:20-27")
    for evidence, quote, verdict in (
        ("E1", "closes at eleven", "not_in_span"),
        ("E2", "closes at ten", "unknown_evidence"),
    ):
        ran = cli("verify", "citation", ref, evidence, quote, "--json")
        assert (ran.code, json.loads(ran.out)["verdict"]) == (1, verdict)
        ran = cli("verify", "citation", ref, evidence, quote)
        assert (ran.code, ran.out.endswith(".\n")) == (1, True)
    cli("source", "erase", "s", "note.txt", "--yes")
    ran = cli("verify", "citation", ref, "E1", "storm gate")
    assert (ran.code, "its source was erased" in ran.out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("s:0190f5a2-7c1e-7a53-8000-0123456789ab", "E1", "x"), 1, "not_found.plan"),
        (("s", "E1", "x"), 2, "request.invalid"),
        (("s:0190f5a2-7c1e-7a53-8000-0123456789ab", "E1", " "), 2, "request.invalid"),
        (("s:0190f5a2-7c1e-7a53-8000-0123456789ab", "E1"), 2, "usage"),
    ],
)
def test_what_cannot_be_verified_is_said(
    cli: Cli, own: str, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    ran = cli("verify", "citation", *arguments, "--json")
    assert (ran.code, ran.problem["code"]) == (code, problem)


def test_the_snippets_of_the_documentation_run_and_print_what_it_shows(
    cli: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (
        OPERATIONS.read_text(encoding="utf-8").split("\n## Summaries and citations\n")[1].split("\n## ")[0]
    )
    example, shown, commands = (
        re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[0]
        for language in ("python", "text", "sh")
    )
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    ran = subprocess.run([sys.executable, "-c", example], capture_output=True, encoding="utf-8", check=True)
    assert (ran.stdout, ran.stderr) == (shown, "")
    plan = cli("plan", "notes", "When does the gate close?", "--json").json["plan"]
    derive, verify = (shlex.split(line) for line in commands.splitlines())
    assert "unchanged" in cli(*derive[1:]).out
    assert cli(*(re.sub(r"^notes:.*", plan, word) for word in verify[1:])).code == 0
