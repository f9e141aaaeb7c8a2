"""A scope moves to another model: the old one serves until one transaction switches, and nothing is lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from psycopg.sql import SQL
from psycopg_pool import ConnectionPool

from planner import Planner, Settings
from planner.embedders import CallableEmbedder
from planner.errors import ConflictingInput, EmbedderError, RequestError, UnknownScope
from planner.ingest import scope_id
from planner.pipeline.reembed import CATCH_UP, MAX_ROUNDS
from planner.store.doctor import examine
from planner.store.queries import compose, query
from planner.types import OPEN_TX
from tests.integration.graph import V1, Connection, Graph, ask, circle, circle_embedder, nodes_of, rows_of
from tests.integration.test_ingest_writers import assert_chained

DOCUMENT = "# Title\n\nThe first at 10.\n\n| a | b |\n|---|---|\n| one | two at 30 |\n\nThe last at 60.\n"
CONVERSATION = [{"role": "user", "content": "Asked at 20."}, {"role": "assistant", "content": "Told at 50."}]


class Sphere:
    """Another model: the circle in three dimensions. It keeps what it embeds, and calls `before` first."""

    name, revision, dimensions = "sphere", "1", 3

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.asked: list[str] = []
        self.before = before

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.before()
        self.asked += texts
        return np.pad(circle(list(texts)), ((0, 0), (0, 1)))


@pytest.fixture
def planner(planner: Planner, scope: str) -> Planner:
    """Give the planner of the circle, and a scope with a document, a conversation and a graph."""
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    planner.ingest_conversation(scope, "talk", CONVERSATION)
    graph = Graph().node("n0", 0, text="Graph at 0.").node("n1", 40, text="Graph at 40.")
    graph.into(planner, scope)
    return planner


@pytest.fixture
def moved(planner: Planner) -> Planner:
    """Give a planner of the other model on the same pool."""
    whole = Settings(**V1, max_frac_per_source=1.0)
    return Planner.from_pool(planner.engine.store.pool, settings=whole, embedder=Sphere())


def vectors(conn: Connection, scope: str, model: str) -> dict[str, tuple[bytes, str]]:
    """Return the current vectors of a model by node; there is one a node."""
    rows = conn.execute(
        "SELECT e.node_id, e.text_hash, e.vec::text FROM planner.embedding e"
        " JOIN planner.embedding_model m USING (model_id)"
        " WHERE e.scope_id = %s AND m.name || m.revision = %s AND e.tx_to = %s",
        (scope_id(scope), model, OPEN_TX),
    ).fetchall()
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: (row[1], row[2]) for row in rows}


def models(conn: Connection, scope: str) -> list[tuple[Any, ...]]:
    """Return which models the scope used, and from when to when."""
    return conn.execute(
        "SELECT m.name, s.tx_from, s.tx_to FROM planner.scope_model s"
        " JOIN planner.embedding_model m USING (model_id) WHERE s.scope_id = %s ORDER BY s.tx_from",
        (scope_id(scope),),
    ).fetchall()


def texted(conn: Connection, scope: str) -> set[str]:
    """Return the current nodes that have a text."""
    rows = conn.execute(
        "SELECT DISTINCT n.node_id FROM planner.node n JOIN planner.node_span s"
        " ON (s.scope_id, s.node_id, s.node_tx_from) = (n.scope_id, n.node_id, n.tx_from)"
        " WHERE n.scope_id = %s AND n.tx_to = %s",
        (scope_id(scope), OPEN_TX),
    )
    return {row[0] for row in rows}


@pytest.mark.parametrize("batch", [1, 3, 256])
def test_one_transaction_switches_and_what_was_as_of_before_uses_the_old_model(
    planner: Planner, moved: Planner, conn: Connection, scope: str, batch: int
) -> None:
    before = planner.plan(scope, "at 30", k=3, hops=0)
    told: list[tuple[int, int]] = []
    done = planner.reembed(scope, Sphere(), batch=batch, progress=lambda *now: told.append(now))
    assert (done.tx, done.model, done.dimensions, done.previous) == (4, "sphere", 3, "circle")
    assert models(conn, scope) == [("circle", 1, 4), ("sphere", 4, OPEN_TX)]
    assert vectors(conn, scope, "circle") == {}
    made = vectors(conn, scope, "sphere1")
    assert (made.keys(), done.vectors) == (texted(conn, scope), len(made))
    assert told[-1] == (len(made), len(made))
    assert assert_chained(conn, scope) == 4
    after = moved.plan(scope, "at 30", k=3, hops=0)
    assert after.pool_hash == before.pool_hash  # the sphere sees what the circle saw
    assert planner.plan(scope, "at 30", k=3, hops=0, as_of=3).plan_hash == before.plan_hash
    assert planner.replay(before.ref)


def test_asking_or_ingesting_with_the_old_model_then_says_how(planner: Planner, scope: str) -> None:
    planner.reembed(scope, Sphere())
    for attempt in (
        lambda: planner.plan(scope, "at 30"),
        lambda: planner.ingest_text(scope, "more.md", "More at 70."),
    ):
        with pytest.raises(EmbedderError, match=r"made by sphere revision 1 \(3 .*`planner reembed`"):
            attempt()


def test_a_node_is_embedded_by_the_text_that_ingest_embeds_it_by(
    planner: Planner, conn: Connection, scope: str
) -> None:
    before = {node: row for node, row in vectors(conn, scope, "circle").items() if node[0] != "n"}
    planner.reembed(scope, CallableEmbedder("circle", 2, circle, revision="b"))
    after = vectors(conn, scope, "circleb")
    assert len(before) == 9
    assert {node: after[node] for node in before} == before  # the graph's nodes brought their vectors


def test_what_was_written_meanwhile_is_embedded_and_what_was_closed_is_not(
    planner: Planner, moved: Planner, conn: Connection, scope: str
) -> None:
    turns = iter(
        [
            lambda: planner.ingest_text(scope, "doc.md", DOCUMENT.replace("first at 10", "new at 15")),
            lambda: planner.ingest_text(scope, "late.md", "Late at 80."),
            lambda: Graph().node("n1", 45, text="Another text at 45.").into(planner, scope),
            lambda: planner.plan(scope, "at 15", k=1, hops=0),
        ]
    )
    seen: list[Any] = []
    sphere = Sphere(lambda: seen.append(next(turns, lambda: None)()))
    done = planner.reembed(scope, sphere, batch=2)
    assert [span.text for span in seen[3].spans] == ["The new at 15."]
    assert vectors(conn, scope, "sphere1").keys() == texted(conn, scope)
    assert done.tx == 7
    assert assert_chained(conn, scope) == 7
    for text, angle in (("The new at 15.", 15), ("Late at 80.", 80), ("Another text at 45.", 45)):
        assert moved.plan(scope, f"at {angle}", k=1, hops=0).spans[0].text == text
    history = conn.execute(
        "SELECT count(*) FROM planner.embedding WHERE scope_id = %s AND tx_to <= tx_from", (scope_id(scope),)
    )
    assert history.fetchone() == (0,)


def test_what_is_erased_while_its_text_is_embedded_gets_no_vector(
    planner: Planner, conn: Connection, scope: str
) -> None:
    def erase() -> None:
        conn.execute(
            "UPDATE planner.source_version SET body = NULL, erased_tx = version_tx"
            " WHERE scope_id = %s AND source_id = 'doc.md'",
            (scope_id(scope),),
        )

    done = planner.reembed(scope, Sphere(erase))
    held = conn.execute(
        "SELECT count(*) FROM planner.embedding e JOIN planner.node_span s USING (scope_id, node_id)"
        " WHERE scope_id = %s AND source_id = 'doc.md' AND tx_to = %s",
        (scope_id(scope), OPEN_TX),
    )
    assert (held.fetchone(), done.vectors, done.tx) == ((0,), 4, 4)


_KILLED = """
import sys
from planner import Planner
from tests.integration.test_reembed import Sphere
url, scope = sys.argv[1:]
sphere = Sphere()
def stop():
    if len(sphere.asked) == 6:
        print("here", flush=True)
        sys.stdin.read()
sphere.before = stop
with Planner.connect(url, embedder=sphere) as planner:
    planner.reembed(scope, batch=3)
"""


def test_a_run_that_was_killed_goes_on_where_it_stopped(
    planner: Planner, shared_database_url: str, conn: Connection, scope: str
) -> None:
    command = [sys.executable, "-c", _KILLED, shared_database_url, scope]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.kill()
    process.communicate()
    half = vectors(conn, scope, "sphere1")
    assert (len(half), models(conn, scope)) == (6, [("circle", 1, OPEN_TX)])
    assert planner.plan(scope, "at 30", k=1, hops=0).spans
    sphere = Sphere()
    done = planner.reembed(scope, sphere, batch=3)
    assert (done.tx, done.vectors) == (4, len(sphere.asked))
    made = vectors(conn, scope, "sphere1")
    assert len(sphere.asked) == len(made) - 6
    assert {node: made[node] for node in half} == half


def test_an_embedder_that_fails_half_way_changes_nothing_that_is_in_use(
    planner: Planner, conn: Connection, scope: str
) -> None:
    def fail() -> None:
        if sphere.asked:
            raise RuntimeError("no quota")

    before = planner.plan(scope, "at 30")
    sphere = Sphere(fail)
    with pytest.raises(EmbedderError, match="no quota"):
        planner.reembed(scope, sphere, batch=2)
    assert (models(conn, scope), assert_chained(conn, scope)) == ([("circle", 1, OPEN_TX)], 3)
    assert planner.plan(scope, "at 30").plan_hash == before.plan_hash


def test_going_back_embeds_nothing_that_was_embedded_before(
    planner: Planner, conn: Connection, scope: str
) -> None:
    first = {node: row for node, row in vectors(conn, scope, "circle").items() if node[0] != "n"}
    planner.reembed(scope, Sphere())

    def circle_again(texts: list[str]) -> np.ndarray[Any, Any]:
        asked.extend(texts)
        return circle(texts)

    asked: list[str] = []
    done = planner.reembed(scope, CallableEmbedder("circle", 2, circle_again))
    assert sorted(asked) == ["Graph at 0.", "Graph at 40."]  # their vectors were the graph's own
    again = vectors(conn, scope, "circle")
    assert {node: again[node] for node in first} == first
    assert models(conn, scope) == [("circle", 1, 4), ("sphere", 4, 5), ("circle", 5, OPEN_TX)]
    assert done.vectors == len(again)
    assert [planner.plan(scope, "at 30", as_of=tx, k=3).pool_hash for tx in (3, 5)] == [
        planner.plan(scope, "at 30", k=3).pool_hash
    ] * 2


def test_a_scope_that_uses_the_model_already_is_left_alone(
    planner: Planner, conn: Connection, scope: str
) -> None:
    before = rows_of(conn, scope)
    done = planner.reembed(scope)
    assert (done.tx, done.vectors, rows_of(conn, scope)) == (None, 0, before)


def test_texts_without_a_direction_are_counted_and_do_not_hinder_the_switch(
    planner: Planner, conn: Connection, scope: str
) -> None:
    blind = CallableEmbedder("blind", 2, lambda texts: [[float("at" in text), 0] for text in texts])
    done = planner.reembed(scope, blind, batch=1)
    held = vectors(conn, scope, "blind")
    assert done.without > 2
    assert len(held) + done.without == len(texted(conn, scope))
    assert done.tx == 4


def test_a_scope_whose_writers_are_too_busy_is_reported_and_keeps_what_was_made(
    planner: Planner, conn: Connection, scope: str
) -> None:
    rounds = iter(range(100))

    def busy() -> None:
        turn = next(rounds)
        lines = "\n\n".join(f"Text {i} of round {turn} at {i}." for i in range(CATCH_UP + 1))
        planner.ingest_text(scope, f"round-{turn}.md", lines)

    sphere = Sphere(busy)
    with pytest.raises(ConflictingInput, match="run `planner reembed` again"):
        planner.reembed(scope, sphere, batch=1_000)
    assert next(rounds) == MAX_ROUNDS
    assert models(conn, scope) == [("circle", 1, OPEN_TX)]
    calm = Sphere()
    assert planner.reembed(scope, calm).tx is not None
    assert len(calm.asked) == CATCH_UP + 1
    assert vectors(conn, scope, "sphere1").keys() == texted(conn, scope)


def test_two_runs_at_once_make_one_switch(planner: Planner, conn: Connection, scope: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: planner.reembed(scope, Sphere(), batch=2), range(2)))
    assert sorted(d.tx or 0 for d in done) == [0, 4]
    assert assert_chained(conn, scope) == 4
    assert vectors(conn, scope, "sphere1").keys() == texted(conn, scope)


def test_one_connection_is_enough(planner: Planner, shared_database_url: str, scope: str) -> None:
    with ConnectionPool(shared_database_url, min_size=1, max_size=1, timeout=5, open=True) as pool:
        assert Planner.from_pool(pool, settings=Settings()).reembed(scope, Sphere(), batch=2).tx == 4


def test_a_scope_without_vectors_takes_the_model(planner: Planner, moved: Planner, conn: Connection) -> None:
    scope = "reembed-bare"
    bare = Planner.from_pool(
        planner.engine.store.pool, embedder=CallableEmbedder("none", 2, lambda texts: [[0, 0]] * len(texts))
    )
    bare.ingest_text(scope, "doc.md", DOCUMENT)
    done = planner.reembed(scope, Sphere())
    assert (done.previous, done.tx) == (None, 2)
    assert moved.plan(scope, "at 10", k=1, hops=0).spans[0].text == "The first at 10."


def test_a_vector_index_that_serves_no_longer_is_told(
    planner: Planner, shared_database_url: str, scope: str
) -> None:
    name = planner.build_index(scope).name
    assert planner.reembed(scope, Sphere()).index_left
    found = {check.name: check for check in examine(shared_database_url)}["unused vector indexes"]
    assert (found.ok, name in found.detail) == (None, True)
    assert f"DROP INDEX CONCURRENTLY planner.{name};" in (found.remedy or "")
    assert planner.build_index(scope).built
    assert not planner.reembed(scope, Sphere()).index_left


def test_the_ledger_says_from_what_to_what_and_never_text(
    planner: Planner, conn: Connection, scope: str
) -> None:
    done = planner.reembed(scope, Sphere())
    row = conn.execute(
        "SELECT action, detail FROM planner.ledger WHERE scope_id = %s AND tx = %s",
        (scope_id(scope), done.tx),
    ).fetchone()
    assert row is not None
    assert row[0] == "reembed"
    assert json.loads(json.dumps(row[1])) == {
        "model": "sphere",
        "revision": "1",
        "dimensions": 3,
        "previous": "circle",
        "vectors": done.vectors,
        "without": 0,
    }


def test_what_cannot_be_is_refused(planner: Planner, scope: str) -> None:
    with pytest.raises(UnknownScope):
        planner.reembed("reembed-nowhere", Sphere())
    with pytest.raises(RequestError, match="batch = 0"):
        planner.reembed(scope, Sphere(), batch=0)


def test_plans_after_the_switch_rank_by_the_new_vectors(
    planner: Planner, conn: Connection, scope: str
) -> None:
    def opposite(texts: list[str]) -> np.ndarray[Any, Any]:
        return -circle(texts)

    mirror = CallableEmbedder("mirror", 2, opposite)
    planner.reembed(scope, mirror)
    plan = ask(planner, scope)  # the embedding [1, 0], to which the mirror turned its back
    assert {
        node["similarity"] for node in nodes_of(conn, plan).values() if node["similarity"] is not None
    } <= {0.0}
    assert circle_embedder().name != mirror.name


def test_nodes_and_texts_are_looked_up_by_key_while_statistics_do_not_know_the_model(
    planner: Planner, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "long.md", "\n\n".join(f"Paragraph {i} at {i}." for i in range(600)))
    conn.execute("ANALYZE planner.node, planner.node_span, planner.source_version, planner.embedding")

    def stop() -> None:
        if len(sphere.asked) > 500:
            raise RuntimeError("half way")

    sphere = Sphere(stop)
    with pytest.raises(EmbedderError, match="half way"):
        planner.reembed(scope, sphere, batch=100)
    row = conn.execute("SELECT model_id FROM planner.embedding_model WHERE name = 'sphere'").fetchone()
    assert row is not None
    pending = compose("reembed_pending", worded=query("worded"))
    asked: dict[str, Any] = {"scope_id": scope_id(scope), "model_id": row[0], "after": "", "limit": 1_000}
    asked["hashes"] = [bytes([i]) * 32 for i in range(100)]
    used = {}
    with planner.engine.store.scoped(scope_id(scope), "writer") as writer:
        for name in ("reembed_nodes", "reembed_count", "reembed_known"):
            explain = SQL("EXPLAIN (FORMAT JSON) ") + compose(name, pending=pending)
            (plan,) = writer.execute(explain, asked).fetchone() or ({},)
            used[name] = set(re.findall(r"'Index Name': '(embedding_\w+)'", str(plan)))
    by_node, by_text = {"embedding_pkey"}, {"embedding_text_idx"}
    assert used == {"reembed_nodes": by_node, "reembed_count": by_node, "reembed_known": by_text}
