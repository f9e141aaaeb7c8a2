"""Old traces go, to the millisecond, with everything that hangs on them and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from planner import EvidencePlan, Planner, Settings
from planner.errors import RequestError, UnknownPlan, UnknownScope
from planner.ingest import scope_id
from planner.pipeline.prune import prune
from planner.trace.plan_id import first_id, plan_id
from tests.integration.graph import Connection, ask, circle_embedder, fan, fresh_scope, rows_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

At = Callable[[datetime], EvidencePlan]


@pytest.fixture
def made_at(planner: Planner, scope: str) -> At:
    """Return a function that plans at a time."""
    fan(0, 10).into(planner, scope)

    def make(time: datetime) -> EvidencePlan:
        timed = Planner.from_pool(
            planner.engine.store.pool,
            settings=Settings(max_frac_per_source=1.0),
            embedder=circle_embedder(),
            clock=lambda: time,
        )
        return ask(timed, scope)

    return make


def delivered(conn: Connection, plan: EvidencePlan | None, scope: str, time: datetime) -> UUID:
    """Write a delivery as one is written, of a plan or of none."""
    delivery = plan_id(time, b"0123456789")
    conn.execute(
        "INSERT INTO planner.delivery VALUES (%s, %s, %s, %s, 'tokens', '1', 'c', 9, 3, sha256('x'),"
        " '{}', '[]', '[]', '{}')",
        (scope_id(scope), delivery, plan.plan_id if plan else None, time),
    )
    return delivery


def left(conn: Connection, scope: str) -> set[str]:
    rows = conn.execute("SELECT plan_id::text FROM planner.plan WHERE scope_id = %s", (scope_id(scope),))
    return {row[0] for row in rows.fetchall()}


def test_the_bound_is_exact_to_the_millisecond(
    planner: Planner, conn: Connection, scope: str, made_at: At
) -> None:
    old = made_at(NOW - MILLISECOND)
    same, later = made_at(NOW + timedelta(microseconds=999)), made_at(NOW + MILLISECOND)
    assert planner.prunable_trace(NOW, scope).plans == 1
    gone = planner.prune_trace(NOW, scope)
    assert (gone.plans, gone.candidates, gone.nodes, gone.deliveries) == (1, 2, 2, 0)
    assert left(conn, scope) == {same.plan_id, later.plan_id}
    with pytest.raises(UnknownPlan):
        planner.load(old.ref)
    assert planner.replay(same.ref).plan_hash == same.plan_hash


def test_plans_go_with_their_pools_their_nodes_and_their_deliveries(
    planner: Planner, conn: Connection, scope: str, made_at: At
) -> None:
    before = rows_of(conn, scope)
    old, new = made_at(NOW - timedelta(days=1)), made_at(NOW)
    delivered(conn, old, scope, NOW + timedelta(days=1))  # of an old plan, however late
    delivered(conn, None, scope, NOW - timedelta(days=1))  # of no plan, and old
    kept = delivered(conn, new, scope, NOW + timedelta(days=2))
    found = planner.prunable_trace(NOW, scope)
    assert (found.plans, found.deliveries) == (1, 2)
    gone = planner.prune_trace(NOW, scope)
    assert (gone.plans, gone.deliveries) == (1, 2)
    rows = rows_of(conn, scope)
    changed = {table: rows[table] - before[table] for table in rows if rows[table] != before[table]}
    assert changed == {"plan": 1, "plan_candidate": 2, "plan_node": 2, "delivery": 1}
    (remaining,) = conn.execute(
        "SELECT delivery_id FROM planner.delivery WHERE scope_id = %s", (scope_id(scope),)
    ).fetchall()
    assert remaining == (kept,)


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 100])
def test_batches_of_any_size_delete_the_same(
    planner: Planner, conn: Connection, scope: str, made_at: At, batch: int
) -> None:
    for age in range(1, 6):
        made_at(NOW - timedelta(hours=age))
        delivered(conn, None, scope, NOW - timedelta(hours=age))
    kept = made_at(NOW)
    gone = prune(planner.engine, NOW, scope, batch=batch)
    assert (gone.plans, gone.candidates, gone.deliveries) == (5, 10, 5)
    assert left(conn, scope) == {kept.plan_id}
    again = prune(planner.engine, NOW, scope, batch=batch)
    assert (again.plans, again.deliveries) == (0, 0)


def test_other_scopes_are_touched_only_where_none_is_named(
    planner: Planner, conn: Connection, scope: str, made_at: At
) -> None:
    long_ago = datetime(2001, 1, 1, tzinfo=UTC)
    elsewhere = fresh_scope()
    fan(0).into(planner, elsewhere)
    timed = Planner.from_pool(
        planner.engine.store.pool,
        settings=Settings(max_frac_per_source=1.0),
        embedder=circle_embedder(),
        clock=lambda: long_ago,
    )
    theirs, mine = ask(timed, elsewhere), made_at(long_ago)
    assert planner.prune_trace(long_ago + MILLISECOND, scope).plans == 1
    assert left(conn, elsewhere) == {theirs.plan_id}
    assert planner.prune_trace(long_ago + MILLISECOND).plans == 1
    assert left(conn, elsewhere) == set()
    assert mine.plan_id not in left(conn, scope)
    with pytest.raises(UnknownScope):
        planner.prune_trace(NOW, "nowhere")
    with pytest.raises(RequestError, match="no zone"):
        planner.prune_trace(datetime(2026, 1, 1), scope)


def test_an_id_is_below_the_bound_of_a_time_exactly_where_it_was_made_in_an_earlier_millisecond() -> None:
    for microseconds in range(0, 2_000, 37):
        bound = first_id(NOW + timedelta(microseconds=microseconds))
        for offset in (-2_000, -1_001, -1_000, -1, 0, 1, 999, 1_000):
            made = NOW + timedelta(microseconds=microseconds + offset)
            earlier = made.replace(microsecond=made.microsecond // 1_000 * 1_000) < (
                NOW + timedelta(microseconds=microseconds // 1_000 * 1_000)
            )
            for random in (bytes(10), b"\xff" * 10):
                assert (plan_id(made, random) < bound) == earlier
    assert first_id(datetime(1, 1, 1, tzinfo=UTC)) == first_id(datetime(1970, 1, 1, tzinfo=UTC))


def test_the_counts_are_json_data(planner: Planner, scope: str, made_at: At) -> None:
    made_at(NOW)
    told = json.loads(json.dumps(planner.prune_trace(NOW + MILLISECOND, scope).to_dict()))
    assert told["plans"] == 1
    assert told["vacuum"].startswith("VACUUM")
