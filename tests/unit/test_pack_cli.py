"""`planner pack`: what it prints, what it refuses, and with which exit code."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from planner.hashing import plan_hash
from planner.selection.budget import resolve_budget
from planner.selection.select import select
from planner.settings import DEFAULT_KIND_PRIORS
from planner.surfaces.cli import main
from planner.types import Candidate, SelectionPolicy

Run = Callable[..., tuple[int, str, str]]

GOOD: dict[str, Any] = {
    "source_id": "a.md",
    "version_tx": 1,
    "start": 0,
    "end": 90,
    "kind": "paragraph",
    "class": "truth",
    "score": 0.8,
    "tokens": 21,
}
SPAN_FIELDS = {"source_id", "version_tx", "start", "end", "kind", "class", "weight", "weight_bits", "tokens"}


def line(without: str = "", **changes: object) -> str:
    return json.dumps({k: v for k, v in {**GOOD, **changes}.items() if k != without}, ensure_ascii=False)


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, lines: tuple[str, ...] = ()) -> tuple[int, str, str]:
        data = "".join(f"{text}\n" for text in lines).encode("utf-8", "surrogatepass")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = main(["pack", *arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def test_the_json_names_budget_hashes_stats_spans_and_rejected(run: Run) -> None:
    lines = (line(), line(start=10, score=0.7), line(source_id="b", tokens=99), line(source_id="日本", end=4))
    code, out, err = run("--budget", "60", "--json", lines=lines)
    assert (code, err) == (0, "")
    plan = json.loads(out)
    assert list(plan) == [
        *("budget_requested", "budget", "narrowed_by", "used", "cap", "plan_hash", "pool_hash"),
        *("plan_model", "score_model", "counter", "stats", "spans", "rejected"),
    ]
    assert (plan["budget"], plan["used"], plan["cap"], plan["narrowed_by"]) == (60, 42, 24, None)
    assert (plan["plan_model"], plan["score_model"], plan["counter"]) == ("v2", "external", "caller")
    assert [span["source_id"] for span in plan["spans"]] == ["a.md", "日本"]
    assert all(set(span) == SPAN_FIELDS for span in plan["spans"])
    assert (plan["spans"][0]["weight"], plan["spans"][0]["weight_bits"]) == (0.8, "3fe999999999999a")
    assert [(span["source_id"], span["outcome"]) for span in plan["rejected"]] == [
        ("b", "unpackable"),
        ("a.md", "duplicate"),
    ]
    assert plan["rejected"][1]["duplicate_of"] == "a.md@1:0-90"


def test_file_and_standard_input_in_any_order_give_the_same_plan(run: Run, tmp_path: Path) -> None:
    lines = (line(), line(source_id="b", tokens=3), line(source_id="c", score=0.1))
    file = tmp_path / "candidates.jsonl"
    file.write_text("\r\n".join((*lines[::-1], "")), encoding="utf-8")
    assert (
        run("--json", lines=lines) == run(str(file), "--json") == run("-", "--json", lines=(*lines, "", " "))
    )


def test_text_is_counted_by_the_named_counter_and_hashed(run: Run) -> None:
    bodies = [line("tokens", source_id=s, text=text) for s, text in (("a", "hello world"), ("b", "京都"))]
    for name, tokens in (("openai:o200k_base", 2), ("utf8-bytes-v1", 11), ("utf8-script-v1", 4)):
        code, out, _ = run("--counter", name, "--json", "--max-frac", "1", lines=tuple(bodies))
        plan = json.loads(out)
        assert (code, plan["counter"], plan["stats"]["token_estimate"]) == (0, name, int("script" in name))
        assert {span["source_id"]: span["tokens"] for span in plan["spans"]}["a"] == tokens
    assert plan["budget"] == 4096 * 9 // 10


@pytest.mark.parametrize(("text", "text_hash"), [("hello", blake3(b"hello").digest()), (None, bytes(32))])
def test_text_enters_the_hash_and_its_absence_is_32_zero_bytes(
    run: Run, text: str | None, text_hash: bytes
) -> None:
    arguments = ["--counter", "utf8-bytes-v1"] if text else []
    given = line("tokens", text=text) if text else line(tokens=5)
    plan = json.loads(run(*arguments, "--budget", "50", "--json", lines=(given,))[1])
    candidate = Candidate("a.md", 1, 0, 90, "paragraph", "truth", 0.8, 5, text_hash)
    policy = SelectionPolicy(DEFAULT_KIND_PRIORS, 0.5, 0.8, "v2")
    budget = resolve_budget(50, counter=plan["counter"], bound="exact", max_frac=0.4)
    selection = select([candidate], policy, budget)
    assert plan["plan_hash"] == plan_hash(selection, plan_model="v2", score_model="external")


def test_estimated_tokens_keep_a_tenth_in_reserve(run: Run) -> None:
    _, out, _ = run("--budget", "99", "--estimate", "--max-frac", "1", "--json", lines=(line(),))
    plan = json.loads(out)
    assert (plan["budget_requested"], plan["budget"], plan["stats"]["token_estimate"]) == (99, 89, 1)


def test_window_and_configuration_only_lower_the_budget(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text("[planner]\nmax_budget = 70\nmax_frac_per_source = 1.0\n", encoding="utf-8")
    for window, budget, by in (
        ("200", 70, "max_budget"),
        ("101", 50, "context_window"),
        ("99999", 70, "max_budget"),
    ):
        arguments = ["--budget", "500", "--context-window", window, "--config", str(config), "--json"]
        plan = json.loads(run(*arguments, lines=(line(),))[1])
        assert (plan["budget_requested"], plan["budget"], plan["narrowed_by"]) == (500, budget, by)


def test_plan_models_differ_in_order_only(run: Run) -> None:
    lines = (line(score=0.9, tokens=40), line(source_id="b", score=0.8, tokens=1))
    orders = {}
    for model in ("v1", "v2"):
        plan = json.loads(run("--plan-model", model, "--json", lines=lines)[1])
        orders[model] = [span["source_id"] for span in plan["spans"]]
    assert orders == {"v1": ["b", "a.md"], "v2": ["a.md", "b"]}


def test_a_person_reads_spans_shares_by_source_and_what_was_rejected(run: Run) -> None:
    lines = (line(), line(start=10), line(source_id="b [red].md", tokens=30))
    code, out, err = run("--budget", "100", lines=lines)
    assert (code, err) == (0, "")
    for part in ("a.md@1:0-90", "b [red].md", "█", "cap 40", "51 of 100 tokens (caller)", "1 duplicate"):
        assert part in out


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (line("score"), "the field 'score' is missing"),
        (line("tokens"), "either tokens or text"),
        (line(text="x"), "either tokens or text"),
        (line(colour="red"), "unknown field 'colour'"),
        (line(end=0), "end = 0 must be greater than start = 0"),
        (line(start=90), "end = 90 must be greater"),
        (line(start=-1), "start"),
        (line(start=0.0), "start"),
        (line(start=True), "start"),
        (line(end=2**62), "end"),
        (line(version_tx="1"), "version_tx"),
        (line(score=float("nan")), "score"),
        (line(score=float("inf")), "score"),
        (line(score=-0.5), "score"),
        (line(score="0.5"), "score"),
        (line(score=None), "score"),
        ('{"score": 1e999}', "source_id"),
        (line(kind="figure"), "unknown kind 'figure'; the kinds are paragraph"),
        (line(**{"class": "lie"}), "class"),
        (line(source_id=""), "source_id"),
        (line(source_id=5), "source_id"),
        (line(source_id="\ud800"), "line 2"),
        (line(tokens=-1), "tokens"),
        (line(tokens=1.5), "tokens"),
        (line(start=0, end=90), "a.md@1:0-90 is on line 1 already"),
        (line("tokens", source_id="b", text="x"), "tokens or text; give all the same"),
        ("[1]", "object"),
        ("{", "JSON"),
        ("[" * 100_000, "line 2"),
        ("null", "object"),
        ('{"a": 1}{"b": 2}', "JSON"),
    ],
)
def test_a_bad_candidate_is_refused_with_its_line(run: Run, bad: str, what: str) -> None:
    code, out, err = run("--json", lines=(line(), bad))
    problem = json.loads(err)
    assert (code, out, problem["code"], problem["line"]) == (1, "", "request.bad_candidate", 2)
    assert problem["detail"].startswith("line 2: ")
    assert what in problem["detail"]
    code, out, err = run(lines=(line(), bad))
    assert (code, out) == (1, "")
    assert err.startswith("line 2: ")
    assert err.count("\n") == 1


def test_bytes_that_are_no_utf8_are_refused_with_their_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "latin"
    file.write_bytes(line().encode() + b"\n" + b'{"source_id": "\xe9"}\n')
    assert "line 2" in run(str(file))[2]


@pytest.mark.parametrize(
    ("arguments", "code", "name"),
    [
        (["--budget", "0"], 2, "request.invalid"),
        (["--budget", "-5"], 2, "request.invalid"),
        (["--budget", "x"], 2, "usage"),
        (["--budget", str(2**53 + 1)], 2, "request.invalid"),
        (["--context-window", "0"], 2, "usage"),
        (["--max-frac", "0"], 2, "settings.invalid"),
        (["--max-frac", "1.5"], 2, "settings.invalid"),
        (["--max-frac", "nan"], 2, "settings.invalid"),
        (["--plan-model", "v3"], 2, "settings.invalid"),
        (["--counter", "nope"], 2, "request.invalid"),
        (["--config", "absent.toml"], 1, "settings.invalid"),
        (["--nope"], 2, "usage"),
        (["absent.jsonl"], 1, "ingest.unreadable"),
        (["."], 1, "ingest.unreadable"),
        (["a", "b"], 2, "usage"),
        (["--budget", "20"], 4, "evidence.insufficient"),
    ],
)
def test_what_is_refused_has_a_code_and_an_exit_code(
    run: Run, arguments: list[str], code: int, name: str
) -> None:
    found, out, err = run(*arguments, "--json", lines=(line(),))
    problem = json.loads(err)
    assert (found, out, problem["code"]) == (code, "", name)
    assert set(problem) >= {"type", "title", "detail", "code"}
    found, out, err = run(*arguments, lines=(line(),))
    assert (found, out) == (code, "")
    assert "Traceback" not in err


@pytest.mark.parametrize("name", ["nope", "hf:0123456789abcdef", "caller"])
def test_text_needs_a_counter_that_exists(run: Run, name: str) -> None:
    code, _, err = run("--counter", name, "--json", lines=(line("tokens", text="x"),))
    assert (code, json.loads(err)["code"]) == (2, "request.unknown_counter")


def test_estimate_is_for_tokens_of_one_s_own(run: Run) -> None:
    code, _, err = run("--estimate", lines=(line("tokens", text="x"),))
    assert code == 2
    assert "--estimate" in err


def test_an_empty_pool_and_one_that_does_not_fit_are_told_apart(run: Run) -> None:
    code, _, err = run("--json")
    assert (code, json.loads(err)["reason"]) == (4, "empty_pool")
    code, _, err = run("--budget", "20", "--json", lines=(line(),))
    problem = json.loads(err)
    assert (code, problem["reason"], problem["sufficient_budget"]) == (4, "nothing_fits", 53)
    assert run("--budget", "53", "--json", lines=(line(),))[0] == 0
    assert run("--budget", "52", "--json", lines=(line(),))[0] == 4
    _, _, err = run("--budget", "20", "--context-window", "90", "--json", lines=(line(),))
    assert "sufficient_budget" not in json.loads(err)
