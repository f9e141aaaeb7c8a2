"""What is kept and what is deleted: versions that nothing needs, and whole scopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from planner import Planner
from planner.errors import RequestError, UnknownPlan, UnknownScope, UnknownSource
from planner.ingest import scope_id
from planner.store.doctor import examine
from tests.integration.graph import Connection, Graph, ask, circle_embedder, fan, fresh_scope, rows_of

DOC = "doc.md"


@pytest.fixture
def edit(planner: Planner, scope: str) -> Callable[..., None]:
    """Give a function that ingests a document whose paragraphs are these angles."""

    def ingest(*angles: int) -> None:
        planner.ingest_text(scope, DOC, "\n\n".join(f"Paragraph at {angle}." for angle in angles))

    return ingest


def numbers(planner: Planner, scope: str) -> list[int]:
    return [version.version_tx for version in planner.versions(scope, DOC)]


def test_versions_say_what_wrote_them_and_what_keeps_them(
    planner: Planner, scope: str, edit: Callable[..., None]
) -> None:
    edit(10)
    plan = ask(planner, scope, hops=0)
    edit(10, 20)
    edit(30)
    planner.append(scope, "talk.json", [{"content": "One."}])
    planner.append(scope, "talk.json", [{"content": "Two."}])
    first, second, third = planner.versions(scope, DOC)
    assert [(v.version_tx, v.action, v.actor) for v in (first, second, third)] == [
        (tx, "ingest", "library") for tx in (1, 2, 3)
    ]
    assert ((first.cited, first.spans), (second.cited, second.spans)) == ((len(plan.spans), 1), (0, 2))
    assert (first.current, second.current, third.current) == (False, False, True)
    turns = planner.versions(scope, "talk.json")
    assert [(v.action, v.extends_tx, v.current) for v in turns] == [
        ("append", None, True),
        ("append", 4, True),
    ]
    with pytest.raises(UnknownSource):
        planner.versions(scope, "nowhere.md")


def test_old_versions_go_with_all_that_derives_from_them_alone(
    planner: Planner, conn: Connection, scope: str, edit: Callable[..., None]
) -> None:
    edit(10, 20)
    edit(30)
    edit(40)
    pruned = planner.prune_versions(scope, DOC, keep_versions=2)
    assert (pruned.deleted, pruned.kept, pruned.tx) == ((1,), ((2, "newest"), (3, "newest")), 4)
    assert numbers(planner, scope) == [2, 3]
    assert planner.prune_versions(scope, DOC, keep_versions=1).deleted == (2,)
    left = rows_of(conn, scope)
    # The source's own node and one paragraph, with its vector and one edge.
    assert {
        name: left[name] for name in ("source_version", "span", "node", "node_span", "embedding", "edge")
    } == {
        "source_version": 1,
        "span": 1,
        "node": 2,
        "node_span": 1,
        "embedding": 1,
        "edge": 1,
    }
    row = conn.execute(
        "SELECT action, detail ->> 'versions' FROM planner.ledger WHERE scope_id = %s AND tx = 5",
        (scope_id(scope),),
    ).fetchone()
    assert row == ("prune", "[2]")
    assert [span.text for span in ask(planner, scope, hops=0).spans] == ["Paragraph at 40."]
    assert ask(planner, scope, as_of=1, hops=0).spans == ()


def test_a_version_from_which_a_current_node_derives_always_stays(
    planner: Planner, scope: str, edit: Callable[..., None]
) -> None:
    edit(10, 20)
    edit(10, 30)
    edit(10, 40)
    pruned = planner.prune_versions(scope, DOC, keep_versions=1, even_cited=True)
    assert (pruned.deleted, pruned.kept) == ((2,), ((1, "current"), (3, "newest")))
    texts = {span.text for span in ask(planner, scope, hops=0).spans}
    assert texts == {"Paragraph at 10.", "Paragraph at 40."}


def test_a_version_that_a_kept_plan_cites_stays_unless_told(
    planner: Planner, scope: str, edit: Callable[..., None]
) -> None:
    edit(10)
    made = ask(planner, scope, hops=0)
    edit(20)
    edit(30)
    pruned = planner.prune_versions(scope, DOC, keep_versions=1)
    assert (pruned.deleted, pruned.kept) == ((2,), ((1, "cited"), (3, "newest")))
    assert planner.prune_versions(scope, DOC, keep_versions=1).tx is None
    assert planner.prune_versions(scope, DOC, keep_versions=1, even_cited=True).deleted == (1,)
    loaded = planner.load(made.ref)
    assert (loaded.plan_hash, [span.text for span in loaded.spans]) == (made.plan_hash, [None])
    assert planner.replay(made.ref).plan_hash == made.plan_hash
    ref = str(made.spans[0].verdict.candidate.ref)
    assert planner.why(made.ref, ref).answers[0].stage.value == "selected"


def test_a_version_that_a_cache_was_made_from_stays(
    planner: Planner, conn: Connection, scope: str, edit: Callable[..., None]
) -> None:
    edit(10)
    edit(20)
    planner.ingest_text(scope, "gist", "In short.", source_class="cache")
    conn.execute("INSERT INTO planner.derivation VALUES (%s, 'gist', 3, %s, 1, 0, 5)", (scope_id(scope), DOC))
    assert planner.prune_versions(scope, DOC, keep_versions=1).kept == ((1, "derived"), (2, "newest"))


def test_what_was_appended_goes_with_its_base(planner: Planner, scope: str) -> None:
    turns: list[dict[str, Any]] = [{"content": f"Turn at {i}."} for i in range(10, 40, 10)]
    for turn in turns:
        planner.append(scope, DOC, [turn])
    planner.ingest_conversation(scope, DOC, [{"content": "Another at 50."}])
    planner.append(scope, DOC, [{"content": "And one at 60."}])
    pruned = planner.prune_versions(scope, DOC, keep_versions=1)
    assert (pruned.deleted, pruned.kept) == ((1, 2, 3), ((4, "newest"), (5, "newest")))
    assert planner.source(scope, DOC).versions == 2


def test_of_a_node_with_two_sources_only_what_it_has_of_the_version_goes(
    planner: Planner, conn: Connection, scope: str
) -> None:
    def graph(text: str) -> Graph:
        made = Graph().source(DOC, text, [(0, len(text))]).source("other", "Other.", [(0, 6)])
        return made.node("n", 10, spans=[(DOC, 0, len(text)), ("other", 0, 6)])

    for text in ("One.", "Two.."):
        graph(text).into(planner, scope)
    assert planner.prune_versions(scope, DOC, keep_versions=1).deleted == (1,)
    rows = conn.execute(
        "SELECT node_tx_from, source_id, version_tx FROM planner.node_span"
        " WHERE scope_id = %s AND node_id = 'n' ORDER BY 1, 2, 3",
        (scope_id(scope),),
    ).fetchall()
    assert rows == [(1, "other", 1), (2, DOC, 2), (2, "other", 1)]


def test_bad_prunes_write_nothing(
    planner: Planner, conn: Connection, scope: str, edit: Callable[..., None]
) -> None:
    with pytest.raises(UnknownScope):
        planner.prune_versions(scope, DOC, keep_versions=1)
    edit(10)
    edit(20)
    before = rows_of(conn, scope)
    with pytest.raises(RequestError, match="keep_versions = 0"):
        planner.prune_versions(scope, DOC, keep_versions=0)
    with pytest.raises(UnknownSource):
        planner.prune_versions(scope, "nowhere.md", keep_versions=1)
    assert rows_of(conn, scope) == before


def lived(planner: Planner, scope: str) -> None:
    fan(0, 10, 20).edge("n0", "n1").into(planner, scope)
    planner.append(scope, "talk.json", [{"content": "One at 30.", "id": "m"}])
    planner.ingest_text(scope, DOC, "One.")
    planner.ingest_text(scope, DOC, "Two.")
    ask(planner, scope, counter="openai:o200k_base")


def test_a_deleted_scope_leaves_no_row_and_no_index_and_touches_no_other(
    planner: Planner, conn: Connection
) -> None:
    gone, stays = fresh_scope("gone"), fresh_scope("stays")
    for scope in (gone, stays):
        lived(planner, scope)
        planner.build_index(scope)
        conn.execute(
            "INSERT INTO planner.api_token VALUES (%s, %s, 'a', '{read}', now())",
            (scope_id(scope), bytes(32)),
        )
        conn.execute(
            "INSERT INTO planner.expectation VALUES (%s, %s, now(), 'me', %s, '{}', 'n0', 'selected')",
            (scope_id(scope), "0" * 16, uuid4()),
        )
        conn.execute(
            "INSERT INTO planner.derivation VALUES (%s, %s, 3, 'n0.txt', 1, 0, 5)", (scope_id(scope), DOC)
        )
        conn.execute(
            "INSERT INTO planner.delivery VALUES (%s, %s, NULL, now(), 'span', 'v1', 'c', 1, 1, %s,"
            " '{}', '[]', '[]', '{}')",
            (scope_id(scope), uuid4(), bytes(32)),
        )
    plan, before = ask(planner, gone), rows_of(conn, stays)
    assert set(rows_of(conn, gone).values()) & {0} == set()  # there is a row in every table
    deleted = planner.delete_scope(gone)
    assert (deleted.plans, deleted.tokens, deleted.sources, len(deleted.indexes)) == (2, 1, 5, 1)
    assert set(rows_of(conn, gone).values()) == {0}
    assert rows_of(conn, stays) == before
    indexes = conn.execute("SELECT relname FROM pg_class WHERE relname LIKE 'embedding_hnsw_%'").fetchall()
    assert (deleted.indexes[0],) not in indexes
    assert any(scope_id(stays).hex in name for (name,) in indexes)
    with pytest.raises(UnknownPlan):
        planner.load(plan.ref)
    with pytest.raises(UnknownScope):
        planner.delete_scope(gone)
    lived(planner, gone)  # the name is free
    assert planner.versions(gone, DOC)[0].version_tx == 3


def test_the_doctor_finds_nothing_wrong_after_a_prune_and_a_deletion(database_url: str) -> None:
    with Planner.connect(database_url, embedder=circle_embedder()) as opened:
        for scope in ("a", "b"):
            lived(opened, scope)
        opened.prune_versions("a", DOC, keep_versions=1, even_cited=True)
        opened.delete_scope("b")
    with psycopg.connect(database_url, autocommit=True) as connection:
        assert [check for check in examine(connection) if check.ok is False] == []
