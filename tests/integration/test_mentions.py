"""`mentions` edges lead from texts to the sources whose titles they mention, whichever came first."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import Planner
from planner.errors import MalformedInput
from planner.ingest import scope_id, source_node_id
from planner.store import mentions
from planner.types import OPEN_TX
from tests.faults.invariants import check_invariants
from tests.integration.graph import Connection, Graph, ask, fresh_scope


def mentioned(conn: Connection, scope: str, as_of: int = OPEN_TX - 1) -> set[tuple[str, str]]:
    """Return which sources' texts mentioned which sources at a transaction, by id."""
    rows = conn.execute(
        "SELECT ns.source_id, s.source_id, e.dst FROM planner.edge e"
        " JOIN planner.node_span ns ON ns.scope_id = e.scope_id AND ns.node_id = e.src"
        " JOIN planner.source s ON s.scope_id = e.scope_id"
        " WHERE e.scope_id = %s AND e.predicate = 'mentions' AND e.tx_from <= %s AND e.tx_to > %s"
        " AND e.confidence = 1",
        (scope_id(scope), as_of, as_of),
    )
    return {(src, dst) for src, dst, node in rows if source_node_id(dst) == node}


def test_a_text_mentions_titles_that_are_there_and_those_that_come(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "first", "The Black Gate and Mercury are here at 10.", title="First beginning")
    planner.ingest_text(scope, "gate", "The first beginning is a time, at 20.", title="Black Gate")
    planner.ingest_text(scope, "planet", "Not a black gate, Mercury at 30.", title="Mercury (planet)")
    planner.ingest_text(scope, "metal", "Some mercury at 40.", title="Mercury (metal)")
    expected = {("first", "gate"), ("gate", "first"), ("first", "planet"), ("planet", "gate")}
    expected |= {("first", "metal"), ("planet", "metal")}
    assert mentioned(conn, scope) == expected
    assert mentioned(conn, scope, as_of=2) == {("first", "gate"), ("gate", "first")}
    check_invariants(shared_database_url, scope)


def test_the_heading_that_is_the_title_counts_and_the_others_do_not(
    planner: Planner, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "doc.md", "# Tide table\n\n## Moon phases\n\nA text at 10.")
    planner.ingest_text(scope, "other.md", "See the tide table and the moon phases at 20.")
    assert mentioned(conn, scope) == {("other.md", "doc.md")}


def test_a_mention_ends_with_its_text_with_its_title_and_with_its_source(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str, tmp_path: Path
) -> None:
    (tmp_path / "gone.md").write_text("# Gone away\n\nA text at 10.", encoding="utf-8")
    planner.ingest(scope, tmp_path)
    planner.ingest_text(scope, "titled.md", "# Red house\n\nA text at 20.")
    planner.ingest_text(scope, "erased.md", "# Last chapter\n\nA text at 30.")
    text = "Of the red house, gone away, and a last chapter, at 40."
    planner.ingest_text(scope, "text.md", text)
    assert mentioned(conn, scope) == {("text.md", f"{name}.md") for name in ("gone", "titled", "erased")}
    planner.ingest_text(scope, "titled.md", "# Blue house\n\nA text at 20.")
    (tmp_path / "gone.md").unlink()
    (tmp_path / "new.md").write_text("New at 50.", encoding="utf-8")
    planner.ingest(scope, tmp_path, sync=True)
    assert mentioned(conn, scope) == {("text.md", "erased.md")}
    planner.erase(scope, "erased.md")
    assert mentioned(conn, scope) == set()
    planner.ingest_text(scope, "titled.md", "# Red house\n\nA text at 20.")
    assert mentioned(conn, scope) == {("text.md", "titled.md")}
    planner.ingest_text(scope, "text.md", "Of nothing at 60.")
    assert mentioned(conn, scope) == set()
    check_invariants(shared_database_url, scope)


def test_a_node_that_changes_keeps_what_it_still_mentions(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "gate", "A text at 10.", title="Black Gate")
    planner.ingest_text(scope, "sea", "A text at 20.", title="Red Sea")
    Graph().node("n", 5, text="The black gate, the red sea.").into(planner, scope)
    Graph().node("n", 5, text="The black gate again.").into(planner, scope)
    rows = conn.execute(
        "SELECT dst, tx_from, tx_to FROM planner.edge WHERE scope_id = %s AND src = 'n'"
        " AND predicate = 'mentions' ORDER BY tx_to",
        (scope_id(scope),),
    ).fetchall()
    assert rows == [(source_node_id("sea"), 3, 4), (source_node_id("gate"), 3, OPEN_TX)]
    check_invariants(shared_database_url, scope)


def test_an_imported_node_of_several_sources_does_not_mention_its_own(
    planner: Planner, conn: Connection, scope: str
) -> None:
    graph = Graph().source("a", "The red sea.", [(0, 12)], title="Black Gate")
    graph.source("b", "The black gate.", [(0, 15)], title="Red Sea")
    graph.node("both", 5, spans=[("a", 0, 12), ("b", 0, 15)]).node("one", 10, spans=[("a", 0, 12)])
    graph.into(planner, scope)
    assert mentioned(conn, scope) == {("a", "b")}


def test_a_conversation_mentions_titles_as_it_grows(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str
) -> None:
    planner.append(scope, "talk.json", [{"content": "Of the red sea at 10."}])
    planner.ingest_text(scope, "sea", "A text at 20.", title="Red Sea")
    planner.append(scope, "talk.json", [{"content": "And the black gate, and the red sea, at 30."}])
    assert planner.ingest_text(scope, "gate", "A text at 40.", title="Black Gate").counts["mentions"] == 1
    assert mentioned(conn, scope) == {("talk.json", "sea"), ("talk.json", "gate")}
    check_invariants(shared_database_url, scope)


def test_a_title_of_common_words_is_not_looked_for_in_older_texts_and_that_is_counted(
    planner: Planner, conn: Connection, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mentions, "MAX_TEXTS", 2)
    for i in range(3):
        planner.ingest_text(scope, f"text-{i}", f"The red sea at {i}.", title="No mention")
    counts = planner.ingest_text(scope, "sea", "A text at 20.", title="Red Sea").counts
    assert (counts["titles_skipped"], counts.get("mentions", 0)) == (1, 0)
    assert planner.ingest_text(scope, "late", "The red sea at 30.", title="x").counts["mentions"] == 1
    assert mentioned(conn, scope) == {("late", "sea")}


def test_an_import_may_not_bring_mentions_of_its_own(planner: Planner, scope: str) -> None:
    graph = Graph().node("a", 5, text="One.").node("b", 5, text="Two.").edge("a", "b", predicate="mentions")
    with pytest.raises(MalformedInput, match=r"predicate: 'mentions' is the planner's own"):
        graph.into(planner, scope)


def test_plans_of_score_model_v1_do_not_walk_over_mentions(
    planner: Planner, conn: Connection, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = fresh_scope()
    plans = []
    for name in (scope, without):
        planner.ingest_text(name, "gate", "The gate at 10.\n\nThe tower at 80.", title="Black Gate")
        planner.ingest_text(name, "sea", "The black gate at 20.\n\nOf the sea at 120.", title="Red Sea")
        Graph().node("a", 5, text="The red sea.").node("b", 90, text="Black Gate.").edge("a", "b").into(
            planner, name
        )
        plans.append(ask(planner, name, k=1, hops=2, fanout=1))
        monkeypatch.setattr("planner.store.write.ANALYSIS", None)
    assert mentioned(conn, scope) and not mentioned(conn, without)
    assert plans[0].plan_hash == plans[1].plan_hash
    assert plans[0].pool_hash == plans[1].pool_hash
    assert plans[0].recall["expansion"] == plans[1].recall["expansion"]
