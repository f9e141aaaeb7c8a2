"""`planner plan`: its JSON, its output for people, its batches and its refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner import Planner
from tests.acceptance.running import SCOPE, Cli

QUESTION = "At what forecast level does the storm gate close?"
FIELDS = {
    "plan",
    "plan_id",
    "plan_hash",
    "pool_hash",
    "budget_requested",
    "budget",
    "used",
    "cap",
    "counter",
    "stats",
    "spans",
    "rejected",
}


def test_json_has_every_field_and_each_span_its_text_and_reference(corpus: Cli) -> None:
    plan = corpus("plan", SCOPE, QUESTION, "--budget", "300", "--json").json
    assert plan.keys() >= FIELDS
    assert plan["plan"] == f"{SCOPE}:{plan['plan_id']}"
    assert plan["used"] <= plan["budget"] == 270
    assert plan["spans"]
    for span in plan["spans"]:
        assert span["text"]
        assert span["ref"] == "{source_id}@{version_tx}:{start}-{end}".format(**span)


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        (("--budget", "500", "--counter", "utf8-bytes-v1"), "budget", 500),
        (("--budget", "500", "--context-window", "400"), "narrowed_by", "context_window"),
        (("--model", "gpt-4o"), "counter", "openai:o200k_base"),
        (("--plan-model", "v2"), "plan_model", "v2"),
        (("--as-of", "3"), "as_of", 3),
        (("--set", "max_frac_per_source=0.1", "--budget", "1000"), "cap", 90),
    ],
    ids=str,
)
def test_options_reach_the_plan(corpus: Cli, options: tuple[str, ...], field: str, value: object) -> None:
    assert corpus("plan", SCOPE, QUESTION, *options, "--json").json[field] == value


def test_filters_window_and_limits_reach_the_request(corpus: Cli) -> None:
    must = {"field": "kind", "op": "eq", "value": "message"}
    window = {"axis": "valid", "from": "2024-01-01T00:00:00Z"}
    options = ("--must", json.dumps(must), "--window", json.dumps(window), "--hops", "1", "--k", "5")
    further = ("--min-score", "0.1", "--method", "exact", "--seed", "a=b", "--seed", "n=0.25")
    plan = corpus("plan", SCOPE, QUESTION, *options, *further, "--json").json
    request = plan["request"]
    assert request["must"] == must
    assert (request["hops"], request["k"], request["min_score"], request["method"]) == (1, 5, 0.1, "exact")
    assert request["seeds"] == [{"node_id": "a=b", "score": 1.0}, {"node_id": "n", "score": 0.25}]
    assert {span["kind"] for span in plan["spans"]} == {"message"}


def test_a_seed_alone_asks_something(corpus: Cli, corpus_url: str) -> None:
    with Planner.connect(corpus_url) as planner:
        node = planner.plan(SCOPE, QUESTION).spans[0].verdict.candidate.node_id
    plan = corpus("plan", SCOPE, "--seed", f"{node}", "--hops", "0", "--json").json
    assert {span["node_id"] for span in plan["spans"]} == {node}


def test_people_see_question_budget_evidence_hashes_and_how_to_ask_why(corpus: Cli) -> None:
    ran = corpus("plan", SCOPE, QUESTION, "--budget", "300")
    assert ran.code == 0
    first, reference, budget = ran.out.splitlines()[:3]
    assert first == QUESTION
    assert reference.startswith(f"plan {SCOPE}:")
    assert "of 270 tokens, at most 108 from one source" in budget
    assert "│" in ran.out
    assert "storm-gate.md@" in ran.out
    assert "over budget" in ran.out
    assert f"planner why {SCOPE}:" in ran.out
    assert "plan_hash " in ran.out


def test_stored_text_reaches_the_terminal_without_its_controls_and_as_written(
    cli: Cli, database_url: str
) -> None:
    hostile = (
        "Pump \x1b[31mred\x1b[0m \x9b2J [bold]not markup[/bold] :smile: \u202egnp.exe 👨‍👩‍👧 runs\n".encode()
    )
    url = ("--database-url", database_url)
    cli("ingest", "s", "-", *url, "--title", "\x1b]0;owned\x07", stdin=hostile)
    plan = cli("plan", "s", "Which pump runs?", *url)
    for ran in (plan, cli("source", "list", "s", *url), cli("source", "show", "s", "stdin", *url)):
        assert ran.code == 0
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(ran.out)
    assert (
        r"Pump \x1b[31mred\x1b[0m \x9b2J [bold]not markup[/bold] :smile: \u202egnp.exe 👨‍👩‍👧 runs"
        in plan.out
    )


def test_no_evidence_is_exit_4_unless_none_is_allowed(corpus: Cli) -> None:
    must = ("--must", '{"field": "source_id", "op": "eq", "value": "nothing"}')
    refused = corpus("plan", SCOPE, QUESTION, *must, "--json")
    assert (refused.code, refused.problem["code"], refused.out) == (4, "evidence.insufficient", "")
    assert refused.problem["reason"] == "empty_pool"
    assert corpus("show", refused.problem["plan"]).out.count("refused: ") == 1
    assert corpus("plan", SCOPE, QUESTION, *must, "--allow-ungrounded", "--json").json["spans"] == []


def test_a_budget_too_small_is_exit_4_and_names_one_that_suffices(corpus: Cli) -> None:
    refused = corpus("plan", SCOPE, QUESTION, "--budget", "1", "--json")
    assert (refused.code, refused.problem["reason"]) == (4, "nothing_fits")
    enough = str(refused.problem["sufficient_budget"])
    assert corpus("plan", SCOPE, QUESTION, "--budget", enough, "--json").json["spans"]


def lines(*requests: Any) -> bytes:
    return b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in requests)


def test_a_batch_answers_each_line_in_order_and_ends_with_3_where_some_failed(corpus: Cli) -> None:
    requests = lines(
        {"text": QUESTION, "budget_tokens": 100},
        {"text": "What does a berth cost?", "nonsense": 1},
        b"\n",
        b"{broken\n",
        b'"text"\n',
        b"\xff\n",
        {"text": QUESTION, "scope": "nobody"},
        {"text": QUESTION, "must": {"field": "source_id", "op": "eq", "value": "nothing"}},
        {"text": "Who is the harbour master?"},
    )
    ran = corpus("plan", SCOPE, "--batch", "-", "--budget", "200", stdin=requests)
    assert (ran.code, ran.err) == (3, "")
    results = [json.loads(line) for line in ran.out.splitlines()]
    codes = [(r.get("line"), r.get("code")) for r in results]
    assert codes == [
        (None, None),
        (2, "request.invalid"),
        (4, "request.invalid"),
        (5, "request.invalid"),
        (6, "request.invalid"),
        (7, "not_found.scope"),
        (8, "evidence.insufficient"),
        (None, None),
    ]
    assert [r["budget_requested"] for r in results if "plan_id" in r] == [100, 200]


def test_a_batch_file_without_failures_ends_with_0(corpus: Cli, tmp_path: Any) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_bytes(lines({"scope": SCOPE, "text": QUESTION}, {"scope": SCOPE, "text": "Oil?"}))
    ran = corpus("plan", "--batch", file)
    assert ran.code == 0
    questions = [json.loads(line)["request"]["text"] for line in ran.out.splitlines()]
    assert questions == [QUESTION, "Oil?"]


def test_a_batch_line_without_a_scope_says_where_to_put_it(corpus: Cli) -> None:
    ran = corpus("plan", "--batch", "-", stdin=lines({"text": QUESTION}))
    assert (ran.code, "SCOPE" in json.loads(ran.out)["detail"]) == (3, True)
