"""`planner demo` and `planner db`: from nothing to explained plans on a server of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.demo import corpus_folder, questions
from planner.embedded import EmbeddedServer
from tests.acceptance.running import Cli


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a data folder that the tests of this module share, in the order in which they stand."""
    folder = tmp_path_factory.mktemp("own") / "data"
    yield folder
    EmbeddedServer(folder).stop()


@pytest.fixture
def own(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(home))
    return cli


def test_demo_makes_the_server_plans_three_questions_and_explains_each(own: Cli, home: Path) -> None:
    ran = own("demo")
    assert (ran.code, ran.err) == (0, "")
    for question in questions()[:3]:
        assert question.text in ran.out
    assert ran.out.count("\nwhy ") == 3
    assert "0 failed" in ran.out
    for place in (str(home), str(corpus_folder())):
        assert place in ran.out


def test_the_commands_that_demo_names_next_work(own: Cli) -> None:
    shown = own("demo").out
    following = [line.split() for line in shown.splitlines() if line.startswith("  planner ")]
    for _, command, *arguments in following:
        if command in ("show", "replay", "source"):
            assert own(command, *arguments).code == 0


def test_demo_in_json_holds_plans_and_answers_and_writes_nothing_twice(own: Cli, home: Path) -> None:
    demo = own("demo", "--json").json
    assert demo["data"] == str(home)
    assert {source["status"] for source in demo["ingested"]["sources"]} == {"unchanged"}
    assert [q["plan"]["request"]["text"] for q in demo["questions"]] == [q.text for q in questions()[:3]]
    assert all(q["why"]["answers"] for q in demo["questions"])


def test_psql_reaches_the_same_database_and_gives_its_exit_code(own: Cli) -> None:
    ran = own("db", "psql", "--", "-At", "-c", "SELECT count(*) > 0 FROM planner.plan_overview")
    assert (ran.code, ran.out) == (0, "t\n")
    assert own("db", "psql", "--", "-c", "SELECT nonsense").code == 1


def test_start_and_stop_are_what_status_and_url_say(own: Cli, home: Path) -> None:
    started = own("db", "start", "--json").json
    assert (started["running"], started["pinned"], started["data_dir"]) == (True, True, str(home))
    assert own("db", "url").out.strip() == started["url"]
    assert "runs until it is stopped" in own("db", "status").out
    stopped = own("db", "stop", "--json").json
    assert (stopped["running"], stopped["pinned"]) == (False, False)
    assert own("db", "status").out.startswith("does not run")


def test_the_data_outlives_the_server(own: Cli) -> None:
    assert own("scope", "list", "--json").json["scopes"][0]["name"] == "demo"
    assert own("doctor").code == 0


def test_a_folder_that_cannot_be_used_is_one_problem(own: Cli, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    ran = own("scope", "list", "--data-dir", file / "below", "--json")
    assert (ran.code, ran.out, ran.problem["code"]) == (1, "", "embedded.failed")
    assert json.loads(ran.err)["detail"].count(str(file))
