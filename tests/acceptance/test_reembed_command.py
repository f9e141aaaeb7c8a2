"""`planner reembed`: from the default model to an endpoint's and back, as an operator does it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.acceptance.running import Cli
from tests.embedding_server import Answer, Endpoint, serving

TEXT = b"The storm gate closes at 2.9 m.\n\nA guest berth costs 240 kr.\n"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Give an endpoint whose model knows only whether a text is about money."""
    with serving() as running:
        running.vectors = lambda texts: [[1.0, 0.0] if "cost" in text else [0.0, 1.0] for text in texts]
        yield running


@pytest.fixture
def http(endpoint: Endpoint) -> tuple[str, str]:
    about = {"url": endpoint.url, "model": "money", "dimensions": 2, "retries": 0}
    return "--set", f"embedder_http={json.dumps(about)}"


@pytest.fixture
def notes(cli: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command on a database whose scope `notes` holds two paragraphs."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    assert cli("ingest", "notes", "-", stdin=TEXT).code == 0
    return cli


def test_a_scope_moves_to_an_endpoint_and_back(notes: Cli, http: tuple[str, str]) -> None:
    as_http = (*http, "--set", "embedder=http")
    refused = notes("plan", "notes", "cost?", *as_http)
    assert (refused.code, "`planner reembed`" in refused.err) == (1, True)
    moved = notes("reembed", "notes", "--embedder", "http", "--batch", "1", "--actor", "ada", *http, "--json")
    assert moved.json == {
        "scope": "notes",
        "tx": 2,
        "model": "money",
        "revision": "",
        "dimensions": 2,
        "previous": "wordllama",
        "vectors": 2,
        "without": 0,
        "index_left": False,
    }
    nearest = ("--set", "score_model=v1", "--set", "k=1", "--set", "hops=0")
    plan = notes("plan", "notes", "What does it cost?", *nearest, *as_http, "--json").json
    assert [span["text"] for span in plan["spans"]] == ["A guest berth costs 240 kr."]
    assert notes("plan", "notes", "cost?").code == 1
    assert notes("reembed", "notes", *as_http).out == "notes uses money already; nothing to do\n"
    back = notes("reembed", "notes").out
    assert back.startswith("notes uses wordllama ")
    assert "instead of money from transaction 3 on; wrote 2 vectors of 256 dimensions" in back
    assert notes("plan", "notes", "cost?", "--set", "max_frac_per_source=1.0").code == 0


def test_an_endpoint_that_fails_leaves_the_scope_as_it_was_and_the_run_can_be_repeated(
    notes: Cli, http: tuple[str, str], endpoint: Endpoint
) -> None:
    move = ("reembed", "notes", "--embedder", "http", "--batch", "1", *http, "--json")
    endpoint.script = [Answer(body={"data": [{"index": 0, "embedding": [1.0, 0.0]}]}), Answer(500, b"sick")]
    failed = notes(*move)
    assert (failed.code, failed.problem["code"]) == (1, "embedder.failed")
    assert "500: sick (tried 1 time)" in failed.problem["detail"]
    assert notes("plan", "notes", "cost?", "--set", "max_frac_per_source=1.0").code == 0
    assert notes(*move).json["vectors"] == 1
    assert len(endpoint.asked) == 3


def test_what_cannot_be_is_a_usage_error_or_named(notes: Cli) -> None:
    assert notes("reembed", "nowhere").code == 1
    assert notes("reembed", "notes", "--batch", "0").code == 2
    assert notes("reembed", "notes", "--actor", "").code == 2
    without = notes("reembed", "notes", "--embedder", "http")
    assert (without.code, "[planner.embedder_http]" in without.err) == (1, True)
    assert notes("reembed", "notes", "--embedder", "oracle").code == 1


def test_doctor_examines_the_endpoint(notes: Cli, http: tuple[str, str]) -> None:
    ran = notes("doctor", *http, "--set", "embedder=http")
    assert ran.code == 1
    assert "money, 2 dimensions; the vectors of notes were made by another model" in ran.out
    assert "`planner reembed`" in ran.out
