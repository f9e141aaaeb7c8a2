"""A planner on the caller's own pool: every connection comes back, and as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from planner import Planner, Settings
from planner.errors import (
    InsufficientEvidence,
    IntegrityError,
    MalformedInput,
    PlannerError,
    RequestError,
    StoreUnavailable,
    UnknownPlan,
    UnknownScope,
    UnknownSpan,
)
from planner.ingest import scope_id
from planner.store.connect import Pool
from tests.integration.graph import QUESTION, V1, Connection, ask, circle_embedder, fan

STATE = (
    "SELECT current_user, session_user, current_setting('role'), current_setting('search_path'),"
    " current_setting('statement_timeout'), current_setting('plan_cache_mode'), current_setting('timezone'),"
    " current_setting('jit'), coalesce(current_setting('hnsw.ef_search', true), '40'),"
    " coalesce(current_setting('planner.scope_id', true), '')"
)

KINDS: dict[str, dict[str, Any]] = {
    "psycopg's defaults": {},
    "autocommit": {"autocommit": True},
    "rows as dicts": {"row_factory": dict_row},
    "prepared at once": {"prepare_threshold": 0},
    "settings of the caller's": {"options": "-c statement_timeout=77000 -c search_path=pg_catalog"},
}


@contextmanager
def pool_of(url: str, size: int = 1, **kwargs: Any) -> Iterator[Pool]:
    with ConnectionPool(url, min_size=size, max_size=size, timeout=5, kwargs=kwargs, open=True) as pool:
        yield pool


def over(pool: Pool) -> Planner:
    whole = Settings(**V1, max_frac_per_source=1.0)
    return Planner.from_pool(pool, settings=whole, embedder=circle_embedder())


def state_of(pool: Pool) -> list[Any]:
    """Return what the pool's one connection is: its user and settings; it is in no transaction."""
    with pool.connection() as conn:
        assert conn.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        row: Any = conn.execute(STATE).fetchone()
        return [conn.autocommit, conn.row_factory, *(row.values() if hasattr(row, "values") else row)]


@pytest.mark.parametrize("kind", KINDS)
def test_any_pool_will_do_and_its_connection_comes_back_as_it_was(
    shared_database_url: str, scope: str, kind: str
) -> None:
    with pool_of(shared_database_url, **KINDS[kind]) as pool:
        before = state_of(pool)
        planner = over(pool)
        fan(*range(5)).into(planner, scope)
        hashes = {ask(planner, scope).plan_hash for _ in range(7)}  # psycopg prepares what is repeated
        assert len(hashes) == 1
        plan = ask(planner, scope)
        assert planner.load(plan.ref).to_dict() == plan.to_dict()
        assert planner.why(plan.ref, "n0").to_dict()["stages"] == {"selected": 1}
        assert planner.build_index(scope).built
        assert ask(planner, scope, method="ann").recall["method"] == "ann"
        assert state_of(pool) == before


FAILURES: list[tuple[type[PlannerError], Callable[[Planner, str], object]]] = [
    (InsufficientEvidence, lambda p, s: p.plan(s, embedding=QUESTION, budget_tokens=1)),
    (RequestError, lambda p, s: p.plan(s, embedding=[1.0])),
    (UnknownScope, lambda p, s: p.plan(f"{s}-none", embedding=QUESTION)),
    (UnknownPlan, lambda p, s: p.load(f"{s}:00000000-0000-7000-8000-000000000000")),
    (UnknownSpan, lambda p, s: p.slice_text(s, "none@1:0-1")),
    (MalformedInput, lambda p, s: p.ingest_text(s, "a.jsonl", '{"record": "nothing"}')),
    (UnknownScope, lambda p, s: p.build_index(f"{s}-none")),
    (IntegrityError, lambda p, s: p.plan(s, embedding=QUESTION)),
]


def test_errors_give_the_connection_back_as_it_was(
    shared_database_url: str, planner: Planner, conn: Connection, scope: str
) -> None:
    fan(0).into(planner, scope)
    with pool_of(shared_database_url) as pool:
        before, failing = state_of(pool), over(pool)
        assert ask(failing, scope).spans
        conn.execute(
            "UPDATE planner.source_version SET body = 'Wrong number 0' WHERE scope_id = %s",
            (scope_id(scope),),
        )
        for error, call in FAILURES:
            with pytest.raises(error):
                call(failing, scope)
            assert state_of(pool) == before, error
        assert pool.get_stats()["pool_available"] == 1


def test_a_planner_leaves_the_callers_pool_open(shared_database_url: str, scope: str) -> None:
    with pool_of(shared_database_url) as pool:
        with over(pool) as planner:
            fan(0).into(planner, scope)
        assert not pool.closed
    with pytest.raises(StoreUnavailable, match="no database connection"):
        ask(planner, scope)


def test_after_a_killed_connection_a_read_and_a_plan_take_another(
    shared_database_url: str, conn: Connection, scope: str
) -> None:
    def kill() -> None:
        with pool.connection() as used:
            conn.execute("SELECT pg_terminate_backend(%s)", (used.info.backend_pid,))

    with pool_of(shared_database_url) as pool:
        planner = over(pool)
        fan(0).into(planner, scope)
        kill()
        assert planner.sources(scope).sources
        kill()
        assert ask(planner, scope).spans


def test_threads_share_a_planner_and_get_the_plans_that_one_would(
    shared_database_url: str, planner: Planner, scope: str
) -> None:
    other = f"{scope}-other"
    fan(*range(0, 60, 3)).into(planner, scope)
    fan(*range(0, 60, 7)).into(planner, other)
    questions = [(name, {"embedding": [1.0, i / 10], "k": 5}) for i in range(6) for name in (scope, other)]
    expected = [ask(planner, name, **fields).pool_hash for name, fields in questions]
    assert len(set(expected)) > 6
    found: dict[int, list[str | None]] = {}
    with pool_of(shared_database_url, size=2) as pool:
        shared = over(pool)
        start = threading.Barrier(4)

        def work(number: int) -> None:
            start.wait()
            found[number] = [ask(shared, name, **fields).pool_hash for name, fields in questions]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == dict.fromkeys(range(4), expected)
