"""The lexical index holds what is current and what was, and is the same if it is built later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import Planner
from planner.errors import ConflictingInput, MalformedInput, UnknownScope
from planner.ingest import scope_id
from planner.lexical.packing import numbers, unpack
from planner.lexical.terms import ANALYSIS, analyse, term_id
from planner.pipeline import reindex
from planner.store import lexical as store_lexical
from planner.types import OPEN_TX
from tests.faults.invariants import check_invariants
from tests.integration.graph import Connection, Graph, fresh_scope

DOCUMENT = "# Harbour\n\nThe gate, the Gate closes at 10.\n\n## Tides\n\nThe tide turns at 20.\n"
TABLES = {
    "lexical": "node_id, tx_from, tx_to, doc, length, terms, context",
    "posting": "term, doc, frequency, length",
    "term": "term, nodes",
}


@pytest.fixture
def without_index(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let scopes be made without an index, as before there was one, until the returned function is called."""
    monkeypatch.setattr("planner.store.write.ANALYSIS", None)
    return monkeypatch.undo


def index_of(conn: Connection, scope: str) -> dict[str, list[Any]]:
    """Return every row of a scope's index, and what it says of it."""
    found: dict[str, list[Any]] = {
        table: sorted(
            conn.execute(f"SELECT {names} FROM planner.{table} WHERE scope_id = %s", (scope_id(scope),))
        )
        for table, names in TABLES.items()
    }
    said = "SELECT lexical, lexical_nodes, lexical_terms FROM planner.scope WHERE scope_id = %s"
    titles = "SELECT source_id, form, first_term, terms FROM planner.title WHERE scope_id = %s AND tx_to = %s"
    edges = "SELECT src, dst FROM planner.edge WHERE scope_id = %s AND predicate = 'mentions' AND tx_to = %s"
    found["scope"] = conn.execute(said, (scope_id(scope),)).fetchall()
    found["title"] = sorted(conn.execute(titles, (scope_id(scope), OPEN_TX)))
    found["mentions"] = sorted(conn.execute(edges, (scope_id(scope), OPEN_TX)))
    return found


def docs_with(conn: Connection, scope: str, word: str) -> list[tuple[int, int]]:
    """Return the frequency and the length of the current texts that hold a word."""
    (term,) = analyse(word)
    rows = conn.execute(
        "SELECT p.frequency, p.length FROM planner.posting p"
        " JOIN planner.lexical l ON l.scope_id = p.scope_id AND l.doc = p.doc AND l.tx_to = %s"
        " WHERE p.scope_id = %s AND p.term = %s",
        (OPEN_TX, scope_id(scope), term_id(term.text)),
    )
    return sorted(rows.fetchall())


def live(planner: Planner, scope: str, folder: Path) -> None:
    """Let sources come, change, come back, grow, be derived from, vanish, and go."""
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    planner.ingest_text(scope, "doc.md", DOCUMENT.replace("turns", "falls"))
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    planner.ingest_text(scope, "doc.md", DOCUMENT, title="Harbour (town)")
    graph = Graph().node("a", 5, text="The Harbour town at 5.", source={"title": "Log of tides"})
    graph.node("b", 50, text="A log of tides at 50.").edge("a", "b").into(planner, scope)
    Graph().node("b", 60, text="Another log at 60.").into(planner, scope)
    for turn in ("Hello, Harbour at 30.", "Goodbye, tides at 40."):
        planner.append(scope, "talk.json", [{"speaker": "Ann", "content": turn}])
    planner.derive(scope, "In short at 70.", [planner.source(scope, "doc.md").spans[1].ref], title="Short")
    for name in ("stays.md", "goes.md", "erased.md"):
        (folder / name).write_text(
            f"# The file {name}\n\nIn Short, Harbour and tides, at 80.", encoding="utf-8"
        )
    planner.ingest(scope, folder)
    (folder / "goes.md").unlink()
    planner.ingest(scope, folder, sync=True)
    planner.erase(scope, "erased.md")


def test_each_node_with_a_text_has_a_row_with_its_terms_and_what_they_stand_in(
    planner: Planner, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    rows = conn.execute(
        "SELECT l.doc, l.length, l.terms, l.context FROM planner.lexical l"
        " JOIN planner.node_span ns ON ns.scope_id = l.scope_id AND ns.node_id = l.node_id"
        " WHERE l.scope_id = %s ORDER BY ns.span_start",
        (scope_id(scope),),
    ).fetchall()
    expected = [
        ("Harbour", ""),
        ("The gate, the Gate closes at 10", "Harbour"),
        ("Tides", "Harbour"),
        ("The tide turns at 20", "Harbour Tides"),
    ]
    for (_, length, terms, context), (said, around) in zip(rows, expected, strict=True):
        assert numbers(unpack(terms)).tolist() == [term_id(t.text) for t in analyse(said)]
        assert numbers(unpack(context)).tolist() == [term_id(t.text) for t in analyse(around)]
        assert length == len(analyse(said)) + len(analyse(around))
    assert sorted(row[0] for row in rows) == [1 << 20 | place for place in range(4)]
    assert docs_with(conn, scope, "gates") == [(2, 8)]
    assert docs_with(conn, scope, "harbour") == [(1, 1), (1, 2), (1, 7), (1, 8)]
    assert docs_with(conn, scope, "the") == []
    assert index_of(conn, scope)["scope"] == [(ANALYSIS, 4, 18)]


def test_the_index_follows_whatever_becomes_of_sources(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str, tmp_path: Path
) -> None:
    live(planner, scope, tmp_path)
    check_invariants(shared_database_url, scope)
    assert docs_with(conn, scope, "falls") == []
    past = conn.execute(
        "SELECT count(*) FROM planner.lexical WHERE scope_id = %s AND tx_to < %s", (scope_id(scope), OPEN_TX)
    ).fetchone()
    assert past is not None and past[0] > 5
    before = index_of(conn, scope)
    planner.ingest(scope, tmp_path / "stays.md")
    assert planner.ingest_text(scope, "doc.md", DOCUMENT, title="Harbour (town)").counts == {}
    assert index_of(conn, scope) == before


def test_pruned_versions_leave_the_index_with_their_titles(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "doc.md", "# One title\n\nThe first text at 10.")
    planner.ingest_text(scope, "doc.md", "# Another title\n\nThe second text at 20.")
    planner.prune_versions(scope, "doc.md", keep_versions=1)
    assert {row[1] for row in index_of(conn, scope)["lexical"]} == {2}
    titles = conn.execute(
        "SELECT tx_from FROM planner.title WHERE scope_id = %s", (scope_id(scope),)
    ).fetchall()
    assert titles == [(2,)]
    check_invariants(shared_database_url, scope)


def test_a_deleted_scope_begins_again(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    planner.delete_scope(scope)
    assert index_of(conn, scope) == {name: [] for name in (*TABLES, "scope", "title", "mentions")}
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    check_invariants(shared_database_url, scope)


def test_more_nodes_than_a_transaction_has_numbers_for_are_refused_and_nothing_is_written(
    planner: Planner, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_lexical, "MAX_NODES", 4)
    with pytest.raises(MalformedInput, match=r"5 nodes at once; one transaction takes 4"):
        planner.ingest_text(scope, "doc.md", DOCUMENT)
    with pytest.raises(UnknownScope):
        planner.sources(scope)


def test_many_nodes_are_written_in_parts(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    monkeypatch.setattr(store_lexical, "DOCS_AT_ONCE", 2)
    other = fresh_scope()
    planner.ingest_text(other, "doc.md", DOCUMENT)
    assert index_of(conn, other) == index_of(conn, scope)
    planner.erase(other, "doc.md")
    assert [rows for name, rows in index_of(conn, other).items() if name != "scope"] == [[]] * 5
    check_invariants(shared_database_url, other)


def test_a_scope_without_an_index_is_left_without_until_it_is_built_as_it_would_have_grown(
    planner: Planner,
    shared_database_url: str,
    conn: Connection,
    scope: str,
    tmp_path: Path,
    without_index: Callable[[], None],
) -> None:
    live(planner, scope, tmp_path)
    assert index_of(conn, scope) == {
        **{name: [] for name in (*TABLES, "title", "mentions")},
        "scope": [(None, 0, 0)],
    }
    without_index()
    planner.ingest_text(scope, "last.md", "# Last\n\nHarbour and tides at 90.")
    assert index_of(conn, scope)["lexical"] == []
    told: list[tuple[int, int]] = []
    built = planner.build_lexical_index(scope, progress=lambda done, total: told.append((done, total)))
    assert (built.tx, built.analysis) == (planner.verify_ledger(scope).entries, ANALYSIS)
    assert told[-1] == (built.added, built.added)
    check_invariants(shared_database_url, scope)
    (folder := tmp_path / "again").mkdir()
    grown = fresh_scope()
    live(planner, grown, folder)
    planner.ingest_text(grown, "last.md", "# Last\n\nHarbour and tides at 90.")
    made, expected = index_of(conn, scope), index_of(conn, grown)
    places = ("lexical", "posting")  # an erased version has left a gap in the numbers that were given once
    assert {k: v for k, v in made.items() if k not in places} == {
        k: v for k, v in expected.items() if k not in places
    }
    assert [(*row[:3], *row[4:]) for row in made["lexical"]] == [
        (*row[:3], *row[4:]) for row in expected["lexical"]
    ]
    assert len(made["posting"]) == len(expected["posting"])


def test_an_index_that_is_given_up_while_it_is_built_is_not_taken_for_whole(
    planner: Planner, conn: Connection, scope: str
) -> None:
    def give_up(*_: int) -> None:
        conn.execute("UPDATE planner.scope SET lexical = NULL WHERE scope_id = %s", (scope_id(scope),))

    planner.ingest_text(scope, "doc.md", "Harbour and tides at 90.")
    give_up()
    with pytest.raises(ConflictingInput, match="run it again"):
        planner.build_lexical_index(scope, progress=give_up)
    assert index_of(conn, scope)["scope"][0][0] is None


def test_an_index_is_built_beside_writers_and_a_run_that_was_cut_off_is_continued(
    planner: Planner,
    shared_database_url: str,
    conn: Connection,
    scope: str,
    monkeypatch: pytest.MonkeyPatch,
    without_index: Callable[[], None],
) -> None:
    for i in range(6):
        planner.ingest_text(scope, f"doc-{i}.md", f"# Title {i}a\n\nOf Title {(i + 1) % 6}a, at {i}.")
    without_index()
    monkeypatch.setattr(reindex, "BATCH", 4)

    class Cut(Exception):
        pass

    def cut(done: int, total: int) -> None:
        planner.ingest_text(scope, "doc-0.md", f"# Title 0b\n\nOf Title 1a and Title 0b, at {done}.")
        planner.ingest_text(scope, "doc-1.md", f"# Title 1a\n\nOf Title 0b, at {done}.")
        planner.erase(scope, "doc-2.md")
        if done > 4:
            raise Cut

    with pytest.raises(Cut):
        planner.build_lexical_index(scope, progress=cut)
    assert index_of(conn, scope)["scope"][0][0] == f"building:{ANALYSIS}"
    rows = len(index_of(conn, scope)["lexical"])
    built = planner.build_lexical_index(scope)
    assert 0 < built.added == len(index_of(conn, scope)["lexical"]) - rows
    check_invariants(shared_database_url, scope)
    assert (
        len(index_of(conn, scope)["mentions"]) == 4
    )  # 0 → 1, 1 → 0, 3 → 4, 4 → 5; 5 → 0 has another title now
    assert planner.build_lexical_index(scope).tx is None


def test_an_index_of_another_analysis_is_made_anew_and_a_damaged_one_is_mended(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    planner.ingest_text(scope, "other.md", "Nothing but the Harbour at 10.")
    whole = index_of(conn, scope)
    conn.execute("UPDATE planner.scope SET lexical = 'terms/0' WHERE scope_id = %s", (scope_id(scope),))
    conn.execute("UPDATE planner.lexical SET terms = context, length = 2 * length WHERE false")
    conn.execute("DELETE FROM planner.term WHERE scope_id = %s", (scope_id(scope),))
    assert planner.build_lexical_index(scope).added == 5
    assert index_of(conn, scope) == whole
    conn.execute("UPDATE planner.scope SET lexical = NULL WHERE scope_id = %s", (scope_id(scope),))
    planner.ingest_text(scope, "late.md", "Written while nobody kept the index, at 30.")
    conn.execute("UPDATE planner.scope SET lexical = %s WHERE scope_id = %s", (ANALYSIS, scope_id(scope)))
    assert planner.build_lexical_index(scope).added == 1
    check_invariants(shared_database_url, scope)


def test_an_unknown_scope_has_no_index(planner: Planner, scope: str) -> None:
    with pytest.raises(UnknownScope):
        planner.build_lexical_index(scope)
