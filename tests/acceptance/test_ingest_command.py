"""`planner ingest`: what it writes, what it says, and what becomes of inputs that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.running import Cli


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# Alpha\n\nThe alpha pump runs at night.\n", encoding="utf-8")
    (folder / "sub" / "b.txt").write_text("The beta pump runs by day.\n", encoding="utf-8")
    return folder


@pytest.fixture
def fresh(cli: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    return cli


def test_a_folder_becomes_sources_by_relative_path_and_a_second_run_writes_nothing(
    fresh: Cli, notes: Path
) -> None:
    first = fresh("ingest", "s", notes, "--json").json
    assert [(s["source_id"], s["status"]) for s in first["sources"]] == [
        ("a.md", "new"),
        ("sub/b.txt", "new"),
    ]
    again = fresh("ingest", "s", notes, "--json").json
    assert {s["status"] for s in again["sources"]} == {"unchanged"}
    assert not any(again["counts"].values())
    assert fresh("scope", "list", "--json").json["scopes"][0]["last_tx"] == 2


def test_each_input_that_cannot_be_read_is_named_and_the_rest_is_ingested(fresh: Cli, notes: Path) -> None:
    (notes / "binary.bin").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(128, 256)))
    (notes / "empty.md").write_bytes(b"")
    (notes / "latin.md").write_bytes("Größe".encode("latin-1"))
    (notes / "nul.md").write_bytes(b"words\0of text")
    (notes / "large.md").write_text("word " * 400)
    ran = fresh("ingest", "s", notes, "missing.md", "--set", "max_file_bytes=1500", "--json")
    assert ran.code == 3
    assert len(ran.json["sources"]) == 2
    codes = {Path(f["path"]).name: f["code"] for f in ran.json["failures"]}
    assert codes == {
        "binary.bin": "ingest.binary",
        "empty.md": "ingest.empty",
        "latin.md": "ingest.undecodable",
        "large.md": "ingest.too_large",
        "missing.md": "ingest.unreadable",
        "nul.md": "ingest.nul",
    }


def test_people_read_a_table_and_the_reason_of_each_failure(fresh: Cli, notes: Path) -> None:
    (notes / "empty.md").write_bytes(b"")
    ran = fresh("ingest", "s", notes)
    assert ran.code == 3
    assert "sub/b.txt" in ran.out
    assert "2 sources in s, 1 failed" in ran.out
    assert [line for line in ran.err.splitlines() if "empty.md" in line and line.startswith("not ingested: ")]


def test_standard_input_is_a_source(fresh: Cli) -> None:
    report = fresh("ingest", "s", "-", "--title", "Piped", "--json", stdin=b"From a pipe.\n").json
    shown = fresh("source", "show", "s", report["sources"][0]["source_id"], "--json").json
    assert (shown["title"], len(shown["spans"])) == ("Piped", 1)


def test_title_trust_attributes_and_actor_are_kept_and_attributes_filter_plans(
    fresh: Cli, notes: Path
) -> None:
    about = (
        "--title",
        "T",
        "--trust",
        "verified",
        "--actor",
        "ada",
        "--attr",
        "team=core",
        "--attr",
        "x=a=b",
    )
    fresh("ingest", "s", notes / "a.md", *about)
    fresh("ingest", "s", notes / "sub" / "b.txt", "--attr", "team=other")
    shown = fresh("source", "show", "s", "a.md", "--json").json
    kept = {key: shown[key] for key in ("title", "trust", "actor", "attributes")}
    attributes = {"team": "core", "x": "a=b"}
    assert kept == {"title": "T", "trust": "verified", "actor": "ada", "attributes": attributes}
    must = json.dumps({"field": "attributes.team", "op": "eq", "value": "core"})
    plan = fresh("plan", "s", "Which pump runs?", "--must", must, "--json").json
    assert {span["source_id"] for span in plan["spans"]} == {"a.md"}
