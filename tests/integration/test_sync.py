"""`--sync`: sources whose files vanished are withdrawn, and nothing else is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import psycopg
import pytest

from planner import Planner
from planner.errors import RequestError
from planner.ingest import scope_id
from planner.store.doctor import examine
from planner.types import OPEN_TX, IngestReport
from tests.integration.graph import Connection, Graph, rows_of


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# A\n\nAlpha at 10.\n")
    (folder / "b.md").write_text("# B\n\nSee [A](a.md), at 20\n")
    (folder / "sub" / "c.md").write_text("Gamma at 30.\n")
    return folder


def states(report: IngestReport) -> dict[str, str]:
    return {source.source_id: source.status for source in report.sources}


def live(conn: Connection, scope: str) -> set[str]:
    """Return the sources from which current nodes derive."""
    rows = conn.execute(
        "SELECT DISTINCT ns.source_id FROM planner.node n JOIN planner.node_span ns"
        " ON (ns.scope_id, ns.node_id, ns.node_tx_from) = (n.scope_id, n.node_id, n.tx_from)"
        " WHERE n.scope_id = %s AND n.tx_to = %s",
        (scope_id(scope), OPEN_TX),
    )
    return {row[0] for row in rows}


def test_a_vanished_file_is_withdrawn_and_its_past_stays(
    planner: Planner, conn: Connection, scope: str, docs: Path
) -> None:
    planner.ingest(scope, docs, sync=True)
    then = {span.text for span in planner.plan(scope, "at 0", hops=0).spans}
    (docs / "b.md").unlink()
    (docs / "sub" / "c.md").unlink()
    report = planner.ingest(scope, docs, sync=True)
    assert states(report) == {"a.md": "unchanged", "b.md": "withdrawn", "sub/c.md": "withdrawn"}
    assert live(conn, scope) == {"a.md"}
    assert {source.source_id for source in planner.sources(scope).sources if source.withdrawn} == {
        "b.md",
        "sub/c.md",
    }
    assert planner.source(scope, "b.md").withdrawn
    assert [version.withdrawn_tx for version in planner.versions(scope, "b.md")] == [4]
    (entry,) = conn.execute(
        "SELECT action, detail FROM planner.ledger WHERE scope_id = %s AND tx = 4", (scope_id(scope),)
    ).fetchall()
    assert (entry[0], entry[1]["sources"]) == ("withdraw", ["b.md", "sub/c.md"])  # one transaction for both
    assert {span.text for span in planner.plan(scope, "at 0", hops=0).spans} < then
    assert {span.text for span in planner.plan(scope, "at 0", hops=0, as_of=3).spans} == then
    open_edges = conn.execute(
        "SELECT count(*) FROM planner.edge e WHERE e.scope_id = %s AND e.tx_to = %s AND NOT EXISTS"
        " (SELECT FROM planner.node n WHERE (n.scope_id, n.node_id, n.tx_to) = (e.scope_id, e.src, e.tx_to))",
        (scope_id(scope), OPEN_TX),
    ).fetchone()
    assert open_edges == (0,)


def test_syncing_again_writes_nothing_and_a_file_that_comes_back_is_a_new_version(
    planner: Planner, conn: Connection, scope: str, docs: Path
) -> None:
    planner.ingest(scope, docs)
    whole = (docs / "b.md").read_bytes()
    (docs / "b.md").unlink()
    planner.ingest(scope, docs, sync=True)
    before = rows_of(conn, scope)
    assert "b.md" not in states(planner.ingest(scope, docs, sync=True))
    assert rows_of(conn, scope) == before
    (docs / "b.md").write_bytes(whole)
    again = planner.ingest(scope, docs, sync=True)
    assert (states(again)["b.md"], again.sources[1].version_tx) == ("changed", 5)
    assert (live(conn, scope), planner.source(scope, "b.md").withdrawn) == (
        {"a.md", "b.md", "sub/c.md"},
        False,
    )


def test_what_did_not_come_from_a_folder_of_this_name_stays(
    planner: Planner, conn: Connection, scope: str, docs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "talks"
    other.mkdir()
    (other / "t.md").write_text("A talk at 40.\n")
    planner.ingest(scope, [docs, other])
    planner.ingest_text(scope, "typed.md", "Typed at 50.")
    planner.append(scope, "talk.json", [{"speaker": "Ada", "content": "Said at 60."}])
    Graph().node("n", 70, text="A fact.").into(planner, scope)
    for name in ("a.md", "b.md"):
        (docs / name).unlink()
    report = planner.ingest(scope, docs, sync=True)
    assert {name for name, state in states(report).items() if state == "withdrawn"} == {"a.md", "b.md"}
    assert live(conn, scope) == {"sub/c.md", "t.md", "typed.md", "talk.json", "n.txt"}


def test_a_file_that_cannot_be_ingested_any_more_is_not_withdrawn(
    planner: Planner, conn: Connection, scope: str, docs: Path
) -> None:
    planner.ingest(scope, docs)
    (docs / "a.md").write_bytes(b"\x00\x01")
    report = planner.ingest(scope, docs, sync=True)
    assert ([failure.code for failure in report.failures], "a.md" in live(conn, scope)) == (
        ["ingest.nul"],
        True,
    )


def test_sources_of_an_import_file_go_with_the_file_and_stay_where_it_is_renamed(
    planner: Planner, conn: Connection, scope: str, docs: Path
) -> None:
    graph = docs / "graph.jsonl"
    record = {"record": "source", "source_id": "imported", "text": "From the graph at 80."}
    graph.write_text(json.dumps(record))
    planner.ingest(scope, docs)
    graph.rename(docs / "renamed.jsonl")
    planner.ingest(scope, docs, sync=True)
    assert "imported" in live(conn, scope)
    (docs / "renamed.jsonl").write_text(json.dumps(record | {"text": "Changed at 85."}))
    planner.ingest(scope, docs, sync=True)
    (docs / "renamed.jsonl").write_text("{")
    planner.ingest(scope, docs, sync=True)
    assert "imported" in live(conn, scope)
    (docs / "renamed.jsonl").unlink()
    assert states(planner.ingest(scope, docs, sync=True))["imported"] == "withdrawn"


def test_an_empty_folder_withdraws_nothing(
    planner: Planner, conn: Connection, scope: str, docs: Path
) -> None:
    planner.ingest(scope, docs)
    before = rows_of(conn, scope)
    for path in sorted(docs.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    report = planner.ingest(scope, docs, sync=True)
    assert (len(report.failures), report.sources, rows_of(conn, scope)) == (1, (), before)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_whole_withdraws_nothing(
    planner: Planner, conn: Connection, scope: str, docs: Path
) -> None:
    planner.ingest(scope, docs)
    (docs / "a.md").unlink()
    (docs / "sub").chmod(0)
    try:
        report = planner.ingest(scope, docs, sync=True)
    finally:
        (docs / "sub").chmod(0o755)
    assert (len(report.failures), "a.md" in live(conn, scope)) == (1, True)


@pytest.mark.parametrize("path", ["a.md", "*.md", "absent", "-"])
def test_only_folders_are_synced(
    planner: Planner, conn: Connection, scope: str, docs: Path, path: str
) -> None:
    given: Any = path if path == "-" else docs / path
    with pytest.raises(RequestError, match="is not a folder"):
        planner.ingest(scope, [docs, given], sync=True)
    assert set(rows_of(conn, scope).values()) == {0}


def test_the_folder_is_known_by_its_name_wherever_it_is(
    planner: Planner,
    conn: Connection,
    scope: str,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planner.ingest(scope, docs)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    docs.rename(elsewhere / "docs")
    (elsewhere / "docs" / "a.md").unlink()
    monkeypatch.chdir(elsewhere / "docs" / "sub")
    planner.ingest(scope, "..", sync=True)
    assert live(conn, scope) == {"b.md", "sub/c.md"}


def test_the_doctor_finds_nothing_wrong_after_a_withdrawal(database_url: str, docs: Path) -> None:
    from tests.integration.graph import circle_embedder

    with Planner.connect(database_url, embedder=circle_embedder()) as planner:
        planner.ingest("s", docs)
        (docs / "a.md").unlink()
        planner.ingest("s", docs, sync=True)
    with psycopg.connect(database_url, autocommit=True) as conn:
        assert [check for check in examine(conn) if check.ok is False] == []
