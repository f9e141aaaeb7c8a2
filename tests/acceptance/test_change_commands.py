"""`append`, `ingest --sync`, and what `source` and `scope` destroy: what they do, and what they ask."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.running import Cli, Ran

RUN = "import sys; from planner.surfaces.cli import main; sys.exit(main())"


@pytest.fixture
def own(cli: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command on a database of the test's own, whose scope `s` holds a document in two versions."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    for text in (b"# Title\n\nThe first word.\n", b"# Title\n\nThe second word.\n"):
        assert cli("ingest", "s", "-", stdin=text).code == 0
    return cli


def turns(*contents: str) -> bytes:
    return "\n".join(json.dumps({"speaker": "Ada", "content": content}) for content in contents).encode()


def at_a_terminal(url: str, answer: str, *arguments: str) -> tuple[int, str]:
    """Run a command at a terminal where somebody answers; return its code and what it said."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "PLANNER_DATABASE_URL": url}
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *arguments],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=environment,
    )
    os.write(controller, f"{answer}\n".encode())
    out, _ = process.communicate(timeout=60)
    os.close(terminal)
    said = os.read(controller, 65_536).decode()
    os.close(controller)
    return process.returncode, out.decode() + said


def test_turns_come_from_standard_input_or_a_file_in_any_shape(own: Cli, tmp_path: Path) -> None:
    first = own("append", "s", "talk.json", "--json", stdin=turns("One.", "Two.")).json
    assert first["sources"] == [{"source_id": "talk.json", "status": "new", "version_tx": 3, "spans": 2}]
    path = tmp_path / "more.json"
    path.write_text(json.dumps({"messages": [{"content": "Three.", "id": 3}]}))
    assert "talk.json" in own("append", "s", "talk.json", path).out
    assert own("append", "s", "talk.json", path, "--json").json["sources"][0]["status"] == "unchanged"
    shown = own("source", "show", "s", "talk.json", "--json").json
    assert [(span["ref"], span["ordinal"]) for span in shown["spans"]] == [
        ("talk.json@3:0-4", 0),
        ("talk.json@3:6-10", 1),
        ("talk.json@4:2-8", 2),
    ]


@pytest.mark.parametrize(
    ("stdin", "code"),
    [(b"", "ingest.empty"), (b"{", "ingest.malformed"), (b"[1]", "ingest.malformed"), (b"\0", "ingest.nul")],
)
def test_what_holds_no_messages_is_refused(own: Cli, stdin: bytes, code: str) -> None:
    ran = own("append", "s", "talk.json", "--json", stdin=stdin)
    assert (ran.code, ran.problem["code"]) == (1, code)
    assert own("append", "s", "talk.json", "nowhere.json", "--json").problem["code"] == "ingest.unreadable"


def test_sync_says_what_it_withdrew_and_takes_folders_only(own: Cli, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a.md", "b.md"):
        (docs / name).write_text("A text.\n")
    own("ingest", "s", docs)
    (docs / "b.md").unlink()
    report = own("ingest", "s", docs, "--sync", "--json").json
    assert [(s["source_id"], s["status"]) for s in report["sources"]] == [
        ("a.md", "unchanged"),
        ("b.md", "withdrawn"),
    ]
    assert "(withdrawn)" in own("source", "list", "s").out
    assert own("ingest", "s", docs / "a.md", "--sync", "--json").problem["code"] == "request.invalid"


def test_versions_are_listed_and_pruned_and_what_stays_says_why(own: Cli) -> None:
    own("plan", "s", "the second word", "--json")
    versions = own("source", "show", "s", "stdin", "--versions", "--json").json["versions"]
    assert [(v["version_tx"], v["current"]) for v in versions] == [(1, True), (2, True)]
    assert "current" in own("source", "show", "s", "stdin", "--versions").out
    ran = own("source", "prune", "s", "stdin", "--keep-versions", "1", "--yes")
    assert ran.out.splitlines() == [
        "kept 1: current nodes derive from it",
        "kept 2: among the newest",
        "nothing to delete",
    ]
    own("ingest", "s", "-", stdin=b"# New\n\nAll new.\n")
    pruned = own("source", "prune", "s", "stdin", "--keep-versions", "1", "--yes", "--json").json
    reasons = {1: "cited", 2: "cited", 3: "newest"}
    assert {kept["version_tx"]: kept["reason"] for kept in pruned["kept"]} == reasons
    assert (pruned["deleted"], pruned["tx"]) == ([], None)
    told = ("--keep-versions", "1", "--even-cited", "--yes")
    assert own("source", "prune", "s", "stdin", *told).out.splitlines()[-1] == "deleted 1, 2"


def test_an_erased_source_is_shown_so_by_every_command(own: Cli) -> None:
    plan = own("plan", "s", "the second word", "--json").json
    assert "erased stdin at transaction 3" in own("source", "erase", "s", "stdin", "--yes").out
    again = own("source", "erase", "s", "stdin", "--yes", "--scrub").out
    assert again.splitlines() == ["stdin was erased before", "the tables were written anew"]
    assert "(erased)" in own("source", "list", "s").out
    assert own("source", "show", "s", "stdin", "--json").json["erased"] is True
    assert "(erased)" in own("show", plan["plan"]).out
    assert all(span["origin_erased"] for span in own("show", plan["plan"], "--json").json["spans"])
    assert "erased at transaction 3" in own("why", plan["plan"], plan["spans"][0]["ref"]).out
    assert own("replay", plan["plan"], "--json").json["plan_hash"] == plan["plan_hash"]
    checks = own("doctor", "--json").json["checks"]
    assert [check for check in checks if check["ok"] is False] == []


DESTROYING = [
    ("source", "erase", "s", "stdin"),
    ("source", "prune", "s", "stdin", "--keep-versions", "1"),
    ("scope", "delete", "s"),
]


def refused(ran: Ran) -> bool:
    return (ran.code, ran.problem["code"], "--yes" in ran.problem["detail"]) == (2, "usage", True)


@pytest.mark.parametrize("arguments", DESTROYING, ids=lambda words: " ".join(words[:2]))
def test_without_a_terminal_nothing_is_destroyed_unless_told(own: Cli, arguments: tuple[str, ...]) -> None:
    before = own("source", "show", "s", "stdin", "--json").json
    assert refused(own(*arguments, "--json", stdin=b"y\ns\n"))
    assert own("source", "show", "s", "stdin", "--json").json == before
    assert own(*arguments, "--yes", "--json").code == 0


def test_on_a_terminal_it_asks_and_a_scope_is_to_be_named(own: Cli, database_url: str) -> None:
    erase, delete = DESTROYING[0], DESTROYING[2]
    assert at_a_terminal(database_url, "n", *erase)[0] == 130
    assert own("source", "show", "s", "stdin", "--json").json["erased"] is False
    code, said = at_a_terminal(database_url, "y", *erase)
    assert (code, "Go on?" in said) == (0, True)
    assert own("source", "show", "s", "stdin", "--json").json["erased"] is True
    code, said = at_a_terminal(database_url, "y", *delete)
    assert (code, "'y' is not 's'; nothing was deleted" in said) == (2, True)
    code, said = at_a_terminal(database_url, "s", *delete)
    assert (code, "deleted s: 1 sources, 2 versions" in said) == (0, True)
    assert own("scope", "list", "--json").json == {"scopes": []}
    assert own(*delete, "--yes", "--json").problem["code"] == "not_found.scope"
