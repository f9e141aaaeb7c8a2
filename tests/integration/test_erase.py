"""Erasure: what a source said is gone from every table; what plans decided stays and can be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from planner import Planner
from planner.errors import UnknownScope, UnknownSource, UnknownSpan
from planner.ingest import scope_id
from planner.lexical.terms import analyse, term_id
from planner.store.doctor import examine
from planner.types import OPEN_TX
from tests.faults.invariants import check_invariants
from tests.integration.graph import Connection, Graph, ask, circle_embedder, rows_of

WORD = "Zyzzogeton"
DOCUMENT = f"# {WORD} title\n\n{WORD} paragraph at 10.\n\n## {WORD} section\n\nMore of {WORD} at 20.\n"


def told(conn: Connection, scope: str, word: str = WORD) -> dict[str, int]:
    """Return in how many rows of which tables a word is, as text, or as the bytes of one."""
    tables = [table for table, rows in rows_of(conn, scope).items() if rows]
    found = {}
    for table in tables:
        query = sql.SQL(
            "SELECT count(*) FROM planner.{} t WHERE scope_id = %(scope)s AND (t::text ILIKE %(like)s"
            " OR t::text ILIKE %(hex)s)"
        ).format(sql.Identifier(table))
        like, coded = f"%{word}%", f"%{word.encode().hex()}%"
        row = conn.execute(query, {"scope": scope_id(scope), "like": like, "hex": coded}).fetchone()
        found[table] = row[0] if row else 0
    return {table: count for table, count in found.items() if count}


def vectors(conn: Connection, scope: str) -> set[str]:
    rows = conn.execute("SELECT node_id FROM planner.embedding WHERE scope_id = %s", (scope_id(scope),))
    return {row[0] for row in rows}


@pytest.fixture
def told_of(planner: Planner, conn: Connection, scope: str) -> Callable[[], dict[str, int]]:
    about: dict[str, Any] = {"uri": f"file:{WORD}", "attributes": {"by": WORD}}
    planner.ingest_text(scope, "doc.md", DOCUMENT.replace("20", "25"), **about)
    planner.ingest_text(scope, "doc.md", DOCUMENT, **about)
    planner.ingest_text(scope, "other.md", "# Other\n\nAn innocent paragraph, see [it](doc.md), at 30")
    turns = [{"speaker": WORD, "content": f"{WORD} said at 40.", "id": WORD}]
    planner.append(scope, "talk.json", turns)
    planner.append(scope, "talk.json", [{"speaker": WORD, "content": f"{WORD} again at 50."}])
    return lambda: told(conn, scope)


def test_nothing_of_a_source_is_left_in_any_table(
    planner: Planner, conn: Connection, scope: str, told_of: Callable[[], dict[str, int]]
) -> None:
    ask(planner, scope, counter="openai:o200k_base", hops=0)
    held = rows_of(conn, scope)
    assert told_of().keys() == {"source_version", "span", "node"}
    document, talk = planner.erase(scope, "doc.md"), planner.erase(scope, "talk.json")
    assert told_of() == {}
    assert ((document.tx, document.versions), (talk.tx, talk.versions)) == ((6, 2), (7, 2))
    left = rows_of(conn, scope)
    assert left["token_count"] < held["token_count"]
    assert left["embedding"] == len(vectors(conn, scope)) == 2  # the other document's heading and paragraph
    for table in ("source_version", "span", "node", "node_span", "plan_candidate"):
        assert left[table] == held[table], table  # ids, offsets and hashes stay
    assert left["ledger"] == 7


def test_no_term_of_a_source_is_left_and_what_others_say_is_counted_as_before(
    planner: Planner,
    shared_database_url: str,
    conn: Connection,
    scope: str,
    told_of: Callable[[], dict[str, int]],
) -> None:
    counted = "SELECT term, nodes FROM planner.term WHERE scope_id = %s"
    term, shared = (term_id(found.text) for found in analyse(f"{WORD} 50"))
    before = dict(conn.execute(counted, (scope_id(scope),)).fetchall())
    assert before[term] == 6  # four of the document, two of the conversation: title, heading or speaker too
    planner.ingest_text(scope, "mentions.md", f"Said of {WORD} title at 50.")
    planner.erase(scope, "doc.md")
    planner.erase(scope, "talk.json")
    after = dict(conn.execute(counted, (scope_id(scope),)).fetchall())
    assert (after[term], after[shared]) == (1, 1)
    holding = "SELECT count(*) FROM planner.posting WHERE scope_id = %s AND term = %s"
    assert conn.execute(holding, (scope_id(scope), term)).fetchone() == (1,)
    titles = conn.execute("SELECT source_id FROM planner.title WHERE scope_id = %s", (scope_id(scope),))
    assert set(titles) == {("mentions.md",)}  # `Other` says nothing
    edges = "SELECT count(*) FROM planner.edge WHERE scope_id = %s AND predicate = 'mentions' AND tx_to = %s"
    assert conn.execute(edges, (scope_id(scope), OPEN_TX)).fetchone() == (0,)
    check_invariants(shared_database_url, scope)


def test_other_sources_keep_their_text_labels_and_vectors(
    planner: Planner, conn: Connection, scope: str, told_of: Callable[[], dict[str, int]]
) -> None:
    other = planner.source(scope, "other.md")
    planner.erase(scope, "doc.md")
    planner.erase(scope, "talk.json")
    assert planner.source(scope, "other.md") == other
    labels = conn.execute(
        "SELECT DISTINCT label FROM planner.node WHERE scope_id = %s AND tx_to = %s",
        (scope_id(scope), OPEN_TX),
    ).fetchall()
    assert labels == [("Other",)]
    assert "An innocent paragraph" in ask(planner, scope, hops=0).spans[-1].text  # type: ignore[operator]


def test_an_erased_source_is_shown_as_such_and_is_no_evidence(
    planner: Planner, scope: str, told_of: Callable[[], dict[str, int]]
) -> None:
    planner.erase(scope, "doc.md")
    shown = planner.source(scope, "doc.md")
    assert (shown.erased, shown.title, shown.attributes) == (True, None, {})
    assert {s.source_id: s.erased for s in planner.sources(scope).sources} == {
        "doc.md": True,
        "other.md": False,
        "talk.json": False,
    }
    assert [version.erased_tx for version in planner.versions(scope, "doc.md")] == [6, 6]
    for as_of in (None, 2):
        found = ask(planner, scope, as_of=as_of, hops=2)
        assert "doc.md" not in {span.verdict.candidate.source_id for span in found.spans}
    with pytest.raises(UnknownSpan, match="erased"):
        planner.slice_text(scope, str(shown.spans[0].ref))


def test_plans_of_erased_evidence_load_replay_and_answer_why(
    planner: Planner, scope: str, told_of: Callable[[], dict[str, int]]
) -> None:
    made = ask(planner, scope, hops=0)
    erased = [span for span in made.spans if span.verdict.candidate.source_id == "doc.md"]
    assert erased
    planner.erase(scope, "doc.md")
    loaded = planner.load(made.ref)
    assert (loaded.plan_hash, loaded.pool_hash) == (made.plan_hash, made.pool_hash)
    assert planner.replay(made.ref).plan_hash == made.plan_hash
    assert (planner.verify_plan(made.ref).ok, planner.verify_ledger(scope).ok) == (True, True)
    for span in loaded.to_dict()["spans"]:
        assert span["origin_erased"] == (span["text"] is None) == (span["source_id"] == "doc.md")
    ref = str(erased[0].verdict.candidate.ref)
    for what in (ref, erased[0].verdict.candidate.node_id, "doc.md"):
        answered = planner.why(made.ref, str(what))
        assert "selected" in answered.stages, what
        assert "erased at transaction 6" in answered.answers[0].sentence
    assert planner.why(made.ref, WORD).resolved_as in (None, "phrase")  # the conversation still says it


def test_the_plan_made_as_of_a_time_before_finds_what_is_left(
    planner: Planner, scope: str, told_of: Callable[[], dict[str, int]]
) -> None:
    planner.erase(scope, "doc.md")
    kind = {"field": "kind", "op": "eq", "value": "paragraph"}
    found = ask(planner, scope, match=kind, as_of=5, hops=0)
    fates = {s.verdict.candidate.source_id: s.verdict.outcome.value for s in (*found.spans, *found.rejected)}
    assert fates == {"doc.md": "unsliceable", "other.md": "selected"}


def test_ingesting_an_erased_source_again_makes_a_fresh_version(
    planner: Planner, conn: Connection, scope: str, told_of: Callable[[], dict[str, int]]
) -> None:
    planner.erase(scope, "doc.md")
    again = planner.ingest_text(scope, "doc.md", DOCUMENT)
    assert (again.sources[0].status, again.sources[0].version_tx) == ("changed", 7)
    assert again.counts["embeddings"] == again.counts["nodes"] - 1
    assert [version.erased_tx for version in planner.versions(scope, "doc.md")] == [6, 6, None]
    assert f"{WORD} paragraph at 10." in {span.text for span in ask(planner, scope, hops=0).spans}
    planner.erase(scope, "talk.json")
    planner.append(scope, "talk.json", [{"content": "Afresh at 60.", "id": WORD}])
    assert [held.span.ordinal for held in planner.source(scope, "talk.json").spans] == [0]
    assert planner.erase(scope, "doc.md").versions == 1


def test_erasing_twice_writes_nothing_the_second_time(
    planner: Planner, conn: Connection, scope: str, told_of: Callable[[], dict[str, int]]
) -> None:
    planner.erase(scope, "doc.md")
    before = rows_of(conn, scope)
    assert planner.erase(scope, "doc.md").tx is None
    assert rows_of(conn, scope) == before


def test_caches_made_from_a_source_go_with_it_and_caches_of_caches(
    planner: Planner, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    for name in ("summary", "gist", "unrelated"):
        planner.ingest_text(scope, name, f"{name}: {WORD} in short at 60.", source_class="cache")
    planner.ingest_text(scope, "quoting.md", "Quotes at 70.")
    for cache, origin in (("summary", "doc.md"), ("gist", "summary"), ("quoting.md", "doc.md")):
        conn.execute(
            "INSERT INTO planner.derivation SELECT v.scope_id, v.source_id, v.version_tx, %s, 1, 0, 5"
            " FROM planner.source_version v WHERE v.scope_id = %s AND v.source_id = %s",
            (origin, scope_id(scope), cache),
        )
    erased = planner.erase(scope, "doc.md")
    assert erased.sources == ("doc.md", "gist", "summary")
    assert [s.source_id for s in planner.sources(scope).sources if not s.erased] == [
        "quoting.md",
        "unrelated",
    ]
    assert told(conn, scope) == {"source_version": 1}  # what has not been derived, and says it of itself


def test_of_a_node_that_moved_to_another_source_only_the_erased_past_goes(
    planner: Planner, conn: Connection, scope: str
) -> None:
    graph = Graph().source("a", WORD, [(0, 10)]).node("n", 10, spans=[("a", 0, 10)], label=WORD)
    graph.node("both", 90, label=WORD, spans=[("a", 0, 10)]).into(planner, scope)
    moved = Graph().source("b", "Other words", [(0, 11)]).node("n", 20, label="other", spans=[("b", 0, 11)])
    moved.into(planner, scope)
    planner.erase(scope, "a")
    rows = conn.execute(
        "SELECT n.node_id, n.tx_from, n.tx_to = %s, n.label, (SELECT count(*) FROM planner.embedding e WHERE"
        " (e.scope_id, e.node_id, e.tx_from) = (n.scope_id, n.node_id, n.tx_from))"
        " FROM planner.node n WHERE n.scope_id = %s AND n.kind = 'fact' ORDER BY 1, 2",
        (OPEN_TX, scope_id(scope)),
    ).fetchall()
    assert rows == [("both", 1, False, "", 0), ("n", 1, False, "", 0), ("n", 2, True, "other", 1)]


def test_a_writer_whose_vectors_are_erased_meanwhile_makes_them_again(
    planner: Planner, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "a.md", "The same words at 10.")

    class Erasing:
        name, revision, dimensions = "circle", "", 2

        def __init__(self) -> None:
            self.asked: list[list[str]] = []

        def embed(self, texts: list[str]) -> Any:
            self.asked.append(list(texts))
            planner.erase(scope, "a.md")
            return circle_embedder().embed(texts)

    erasing = Erasing()
    late = Planner.from_pool(planner.engine.store.pool, embedder=erasing)
    late.ingest_text(scope, "b.md", "The same words at 10.\n\nAnd others at 20.")
    assert erasing.asked == [["And others at 20."], ["The same words at 10.", "And others at 20."]]
    assert len(vectors(conn, scope)) == 2


def test_what_is_not_there_cannot_be_erased(planner: Planner, conn: Connection, scope: str) -> None:
    with pytest.raises(UnknownScope):
        planner.erase(scope, "doc.md")
    planner.ingest_text(scope, "a.md", "A text.")
    with pytest.raises(UnknownSource, match=r"doc\.md"):
        planner.erase(scope, "doc.md")
    assert rows_of(conn, scope)["ledger"] == 1


def test_the_doctor_finds_nothing_wrong_after_an_erasure(database_url: str) -> None:
    with Planner.connect(database_url, embedder=circle_embedder()) as opened:
        opened.ingest_text("s", "doc.md", DOCUMENT)
        Graph().node("n", 10, text="A fact.").edge("n", "n", predicate="is").into(opened, "s")
        opened.erase("s", "doc.md")
        opened.erase("s", "n.txt")
    with psycopg.connect(database_url, autocommit=True) as connection:
        assert [check for check in examine(connection) if check.ok is False] == []
