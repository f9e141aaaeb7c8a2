"""Several writers of one scope: its ledger has no gap, its chain holds, and nobody's work is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from planner import Planner, Settings
from planner.errors import ConflictingInput, StoreTimeout
from planner.ingest import scope_id
from planner.store.chain import GENESIS, entry_hash
from planner.store.changes import canonical_json
from planner.types import OPEN_TX
from tests.integration.graph import Connection, Graph, ask, circle, circle_embedder, fan, nodes_of

# Ingests its own files and one that both write, each several times, as fast as it can.
_WRITER = """
import sys
from planner import Planner, Settings
from tests.integration.graph import circle_embedder
url, scope, name = sys.argv[1:]
with Planner.connect(url, settings=Settings(), embedder=circle_embedder()) as planner:
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(6):
        planner.ingest_text(scope, f"{name}-{i}.md", f"Text {i} of {name}, at {i}.")
        planner.ingest_text(scope, "both.md", f"Shared.\\n\\nState {i} of {name}.")
"""


def entries(conn: Connection, scope: str) -> list[tuple[Any, ...]]:
    return conn.execute(
        "SELECT tx, recorded_at, actor, action, detail, entry_hash FROM planner.ledger WHERE scope_id = %s"
        " ORDER BY tx",
        (scope_id(scope),),
    ).fetchall()


def assert_chained(conn: Connection, scope: str) -> int:
    """Recompute the chain from the rows alone; return how long it is."""
    previous, found = GENESIS, entries(conn, scope)
    for place, (tx, recorded_at, actor, action, detail, stored) in enumerate(found, start=1):
        assert tx == place
        previous = entry_hash(
            previous,
            scope_id=scope_id(scope),
            tx=tx,
            recorded_at=recorded_at,
            actor=actor,
            action=action,
            detail=canonical_json(detail),
        )
        assert stored == previous
    return len(found)


def test_two_processes_ingest_one_scope_at_once(
    shared_database_url: str, conn: Connection, planner: Planner, scope: str
) -> None:
    command = [sys.executable, "-c", _WRITER, shared_database_url, scope]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers: list[Any] = [subprocess.Popen([*command, name], **pipes) for name in ("ann", "ben")]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=120)
    assert [writer.returncode for writer in writers] == [0, 0]

    length = assert_chained(conn, scope)
    assert 12 + 2 <= length <= 24
    texts = conn.execute(
        "SELECT body FROM planner.source_version WHERE scope_id = %s AND source_id = 'both.md'",
        (scope_id(scope),),
    ).fetchall()
    assert len(texts) == length - 12
    live = conn.execute(
        "SELECT s.live_nodes,"
        " (SELECT count(*) FROM planner.node n WHERE n.scope_id = s.scope_id AND n.tx_to = %s),"
        " (SELECT count(*) FROM planner.scope_model m WHERE m.scope_id = s.scope_id)"
        " FROM planner.scope s WHERE s.scope_id = %s",
        (OPEN_TX, scope_id(scope)),
    ).fetchone()
    assert live == (12 * 2 + 3, 12 * 2 + 3, 1)  # a source's node and its paragraph; "both.md" has two
    plan = planner.plan(scope, "at 0", k=60, hops=0)
    assert len({span.verdict.candidate.source_id for span in plan.spans}) == 13


class Interrupted:
    """The circle's embedder, before whose answer another writer always comes first."""

    name, revision, dimensions = "circle", "", 2

    def __init__(self, others: Planner, scope: str) -> None:
        self.others, self.scope, self.calls = others, scope, 0

    def intrude(self) -> None:
        self.calls += 1
        self.others.ingest_text(self.scope, f"other-{self.calls}.md", f"Another writer's text {self.calls}.")

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.intrude()
        return circle(list(texts))

    def clock(self) -> datetime:
        with suppress(StoreTimeout):  # when it is asked inside the transaction, the scope is locked
            self.intrude()
        return datetime.now(UTC)


def test_a_writer_that_came_second_compares_again_and_embeds_nothing_twice(
    planner: Planner, conn: Connection, scope: str
) -> None:
    interrupted = Interrupted(planner, scope)
    fan(0).into(planner, scope)  # the scope has its model: what is missing is only the text's vector
    slow = Planner.from_pool(planner.engine.store.pool, settings=Settings(), embedder=interrupted)
    report = slow.ingest_text(scope, "mine.md", "My own text.")
    assert (interrupted.calls, report.sources[0].version_tx) == (1, 3)
    assert assert_chained(conn, scope) == 3


def test_a_graph_that_brings_its_vectors_is_written_however_busy_its_scope_is(
    planner: Planner, conn: Connection, scope: str
) -> None:
    planner.ingest_text(scope, "first.md", "The first.")
    hasty = Settings(statement_timeout_ms=300)
    others = Planner.from_pool(planner.engine.store.pool, settings=hasty, embedder=circle_embedder())
    interrupted = Interrupted(others, scope)
    busy = Planner.from_pool(
        planner.engine.store.pool, settings=Settings(), embedder=circle_embedder(), clock=interrupted.clock
    )
    graph = fan(0, 30)
    graph.node("bare", text="It has a text, and no vector.").node("zero").vector("zero", [0.0, 0.0])
    report = graph.into(busy, scope)
    assert (report.counts["nodes"], report.counts["embeddings"]) == (7, 2)
    assert (interrupted.calls, assert_chained(conn, scope)) == (2, 3)


def test_a_node_that_somebody_else_changed_meanwhile_gets_its_vector_back(
    planner: Planner, conn: Connection, scope: str
) -> None:
    fan(0, 30).into(planner, scope)
    hasty = Settings(statement_timeout_ms=300)
    others = Planner.from_pool(planner.engine.store.pool, settings=hasty, embedder=circle_embedder())

    class Meddler(Interrupted):
        def intrude(self) -> None:
            self.calls += 1
            Graph().node("n0", 90, text="Meddled with.").into(self.others, self.scope)

    busy = Planner.from_pool(
        planner.engine.store.pool,
        settings=Settings(),
        embedder=circle_embedder(),
        clock=Meddler(others, scope).clock,
    )
    fan(0, 30, 60).into(busy, scope)  # n0 was as it should be when this was compared first
    nodes = nodes_of(conn, ask(planner, scope))
    assert nodes["n0"]["similarity"] == 1.0
    assert assert_chained(conn, scope) == 3


def test_a_change_that_somebody_else_made_meanwhile_is_written_once(
    planner: Planner, conn: Connection, scope: str
) -> None:
    class Twin(Interrupted):
        def intrude(self) -> None:
            self.calls += 1
            self.others.ingest_text(self.scope, "mine.md", "The same text.")

    fan(0).into(planner, scope)
    twin = Twin(planner, scope)
    slow = Planner.from_pool(planner.engine.store.pool, settings=Settings(), embedder=twin)
    report = slow.ingest_text(scope, "mine.md", "The same text.")
    assert (report.sources[0].status, report.sources[0].version_tx) == ("unchanged", 2)
    assert assert_chained(conn, scope) == 2


def test_writers_that_never_stop_changing_the_same_source_are_reported(
    planner: Planner, conn: Connection, scope: str
) -> None:
    class Rival(Interrupted):
        def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            self.calls += 1
            graph = fan(0).node("contested", self.calls, text=f"Their version {self.calls}.")
            graph.into(self.others, self.scope)
            return circle(list(texts))

    fan(0).node("contested", 1, text="The first.").into(planner, scope)
    rival = Rival(planner, scope)
    slow = Planner.from_pool(planner.engine.store.pool, settings=Settings(), embedder=rival)
    assert slow.ingest_text(scope, "contested.txt", "Mine.").sources[0].status == "changed"
    assert rival.calls == 1  # what is to be written did not depend on what they wrote
    with pytest.raises(ConflictingInput, match="class"):
        slow.ingest_text(scope, "contested.txt", "Mine too.", source_class="cache")
