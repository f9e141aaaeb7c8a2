"""`planner show`, `replay`, `why`, `scope` and `source`: reading back what is stored."""

from __future__ import annotations

import pytest

from planner import Planner
from planner.demo import corpus_folder
from planner.errors import EmbedderError
from tests.acceptance.running import SCOPE, Cli


def test_show_gives_the_very_plan_again(corpus: Cli) -> None:
    made = corpus("plan", SCOPE, "Who gives the order to close the gate?", "--budget", "300", "--json").json
    assert corpus("show", made["plan"], "--json").json == {**made, "deliveries": []}


def test_show_sets_selected_against_rejected_around_the_cut_line(corpus: Cli, planned: str) -> None:
    plan = corpus("show", planned, "--json").json
    ran = corpus("show", planned, "--rejected", "1000")
    above, below = ran.out.split(f"cut: {plan['used']} of {plan['budget']} tokens used")
    assert all(span["ref"] in above for span in plan["spans"])
    assert plan["rejected"]
    assert all(span["ref"] in below and span["outcome"] in below for span in plan["rejected"])
    few = corpus("show", planned, "--rejected", "2").out
    assert f"{len(plan['rejected']) - 2} more rejected" in few


def test_show_names_the_error_of_a_plan_that_failed(cli: Cli, database_url: str) -> None:
    class Broken:
        name, revision, dimensions = "wordllama", "another", 256

        def embed(self, texts: object) -> object:
            raise AssertionError("never asked: the model is compared first")

    with Planner.connect(database_url) as planner:
        planner.ingest_text("s", "a", "Some text.")
    with (
        Planner.connect(database_url, embedder=Broken()) as planner,
        pytest.raises(EmbedderError) as caught,
    ):
        planner.plan("s", "A question?")
    reference = str(caught.value.detail["plan"])
    ran = cli("show", reference, "--database-url", database_url)
    assert ran.code == 0
    assert "failed: " in ran.out
    assert "A question?" in ran.out
    replayed = cli("replay", reference, "--database-url", database_url, "--json")
    assert (replayed.code, replayed.problem["code"]) == (1, "integrity.replay")


def test_replay_says_that_the_plan_is_identical(corpus: Cli, planned: str) -> None:
    plan = corpus("show", planned, "--json").json
    replay = corpus("replay", planned, "--json").json
    assert replay["identical"] is True
    assert (replay["plan_hash"], replay["pool_hash"]) == (plan["plan_hash"], plan["pool_hash"])
    assert plan["plan_hash"] in corpus("replay", planned).out


def test_why_answers_for_a_span_a_source_and_what_nobody_knows(corpus: Cli, planned: str) -> None:
    plan = corpus("show", planned, "--json").json
    selected, rejected = plan["spans"][0]["ref"], plan["rejected"][0]
    answer = corpus("why", planned, selected, "--json").json["answers"][0]
    assert (answer["ref"], answer["stage"]) == (selected, "selected")
    ran = corpus("why", planned, rejected["ref"])
    assert rejected["ref"] in ran.out
    assert rejected["outcome"].replace("_", " ") in ran.out
    assert corpus("why", planned, plan["spans"][0]["source_id"], "--json").json["resolved_as"] == "source"
    assert corpus("why", planned, "zebra crossing", "--json").json["resolved_as"] is None


def test_scope_list_knows_size_and_model(corpus: Cli) -> None:
    scopes = {scope["name"]: scope for scope in corpus("scope", "list", "--json").json["scopes"]}
    files = [path for path in corpus_folder().rglob("*") if path.is_file()]
    mine = scopes[SCOPE]
    assert (mine["sources"], mine["last_tx"], mine["model"], mine["dimensions"]) == (
        len(files),
        len(files),
        "wordllama",
        256,
    )
    assert SCOPE in corpus("scope", "list").out


def test_scope_index_is_built_once(cli: Cli, database_url: str) -> None:
    url = ("--database-url", database_url)
    cli("ingest", "s", corpus_folder() / "charter.md", *url)
    assert cli("scope", "index", "s", *url, "--json").json["built"] is True
    assert cli("scope", "index", "s", *url, "--json").json["built"] is False
    assert cli("plan", "s", "When was it founded?", "--method", "ann", *url, "--json").json["spans"]


def test_pages_of_sources_join_to_the_whole_list(corpus: Cli) -> None:
    whole = corpus("source", "list", SCOPE, "--json").json
    assert whole["next_after"] is None
    paged, after = [], ""
    while after is not None:
        page = corpus("source", "list", SCOPE, "--limit", "7", "--after", after, "--json").json
        assert len(page["sources"]) <= 7
        paged += page["sources"]
        after = page["next_after"]
    assert paged == whole["sources"]
    assert [s["source_id"] for s in paged] == sorted(s["source_id"] for s in paged)


def test_a_source_is_shown_with_the_spans_that_its_text_has(corpus: Cli, corpus_url: str) -> None:
    shown = corpus("source", "show", SCOPE, "ja/minase-port.md", "--json").json
    text = (corpus_folder() / "ja" / "minase-port.md").read_bytes()
    assert (shown["byte_length"], shown["versions"], shown["class"]) == (len(text), 1, "truth")
    with Planner.connect(corpus_url) as planner:
        for span in shown["spans"]:
            assert planner.slice_text(SCOPE, span["ref"]).encode() == text[span["start"] : span["end"]]
    people = corpus("source", "show", SCOPE, "ja/minase-port.md").out
    assert all(span["ref"] in people for span in shown["spans"])
