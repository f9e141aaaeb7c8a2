"""A plan that an index found: made again by the same index, by a better one, and without any."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from planner import EvidencePlan, Planner, Settings
from planner.ingest import scope_id
from planner.trace.drift import DriftClass
from tests.integration.graph import V1, Connection, Graph, ask, at, circle_embedder

SCOPE = "indexed"

POOR = (
    "CREATE INDEX {} ON planner.embedding USING hnsw ((vec::vector(2)) vector_cosine_ops)"
    " WITH (m = 2, ef_construction = 4)"
    " WHERE scope_id = '{}' AND model_id = {} AND tx_to = 9223372036854775807"
)
"""An index so sparse that it misses some of what is near."""


@dataclass(frozen=True)
class Indexed:
    planner: Planner
    conn: Connection
    name: str


@pytest.fixture
def indexed(database_url: str) -> Iterator[Indexed]:
    """Give a scope whose own index is a poor one."""
    angles = random.Random(1)
    graph = Graph()
    for i in range(1_000):
        graph.node(f"n{i}", angles.uniform(0, 360), text=f"Fact {i}.")
    settings = Settings(**V1, max_frac_per_source=1.0)
    with (
        Planner.connect(database_url, settings=settings, embedder=circle_embedder()) as planner,
        psycopg.connect(database_url, autocommit=True) as conn,
    ):
        graph.into(planner, SCOPE)
        row = conn.execute("SELECT model_id FROM planner.scope_model").fetchone()
        assert row is not None
        name = f"embedding_hnsw_{scope_id(SCOPE).hex}_{row[0]}"
        conn.execute(POOR.format(name, scope_id(SCOPE), row[0]).encode())
        yield Indexed(planner, conn, name)


def missed(planner: Planner) -> EvidencePlan:
    """Return a plan for a question of which the index does not find what is nearest."""
    for degrees in range(360):
        plans = [
            ask(planner, SCOPE, embedding=at(degrees), method=method, k=5, hops=0)
            for method in ("ann", "exact")
        ]
        if plans[0].pool_hash != plans[1].pool_hash:
            return plans[0]
    raise AssertionError("this index is too good")


def test_index_drift(indexed: Indexed) -> None:
    planner = indexed.planner
    plan = missed(planner)
    same = planner.replan(plan.ref)
    assert (same.identical, same.drifts, same.notes) == (True, (), ())

    indexed.conn.execute(f"DROP INDEX planner.{indexed.name}".encode())
    (gone,) = planner.replan(plan.ref).drifts
    assert gone.drift is DriftClass.INDEX
    assert (
        gone.evidence[0] == "method was ann as of 1, is exact: the scope has no valid vector index any more"
    )
    assert any("was not found, is found by semantic" in row for row in gone.evidence[1:])

    planner.build_index(SCOPE)
    better = planner.replan(plan.ref)
    (drift,) = better.drifts
    assert (drift.drift, drift.rows) == (DriftClass.INDEX, gone.rows - 1)
    assert set(drift.evidence) == set(gone.evidence[1:])
    assert {change.change.value for change in better.changes} >= {"entered", "left"}

    Graph().node("later", 200, text="Later.").into(planner, SCOPE)
    (late,) = planner.replan(plan.ref).drifts
    assert late.evidence[0].endswith("an index serves the newest transaction only, 2")


def test_an_index_that_cannot_serve_is_a_note_where_it_had_missed_nothing(indexed: Indexed) -> None:
    planner = indexed.planner
    indexed.conn.execute(f"DROP INDEX planner.{indexed.name}".encode())
    planner.build_index(SCOPE)
    plan = ask(planner, SCOPE, method="ann", k=5, hops=0)
    assert plan.pool_hash == ask(planner, SCOPE, method="exact", k=5, hops=0).pool_hash
    indexed.conn.execute(f"DROP INDEX planner.{indexed.name}".encode())
    found = planner.replan(plan.ref)
    assert (found.identical, found.drifts) == (True, ())
    assert [note.drift for note in found.notes] == [DriftClass.INDEX]
