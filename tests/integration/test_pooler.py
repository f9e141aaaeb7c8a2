"""Behind PgBouncer in transaction mode: clients share sessions, and nothing of one reaches another."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

from planner import Planner, Settings
from planner.ingest import scope_id
from tests.integration.graph import ask, circle_embedder, fan, fresh_scope
from tests.pooler import Through

CLIENTS = 6

SESSION = (
    "SELECT current_user = session_user, current_setting('search_path'),"
    " coalesce(current_setting('planner.scope_id', true), ''), current_setting('statement_timeout')"
)


@pytest.fixture
def pooled_url(server_url: str, through: Through, database_url: str) -> str:
    """Give a fresh migrated database through the pooler."""
    if through(server_url) == server_url:
        pytest.skip("no pooler: set PLANNER_TEST_POOLER to PgBouncer's program")
    return database_url


@pytest.fixture
def planners(pooled_url: str) -> Iterator[list[Planner]]:
    """Give planners with a pool each, more than the pooler has sessions."""
    settings = Settings(max_frac_per_source=1.0)
    with ExitStack() as stack:
        yield [
            stack.enter_context(Planner.connect(pooled_url, settings=settings, embedder=circle_embedder()))
            for _ in range(CLIENTS)
        ]


def test_clients_share_sessions(pooled_url: str) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(psycopg.connect(pooled_url)) for _ in range(CLIENTS)]
        pids = set()
        for client in clients:
            with client.transaction():
                pids.add(client.execute("SELECT pg_backend_pid()").fetchone())
        assert len(pids) < CLIENTS


def test_writers_and_readers_of_many_scopes_at_once_plan_as_if_they_were_alone(
    planners: list[Planner],
) -> None:
    scopes = [fresh_scope("pooled") for _ in planners]

    def live(planner: Planner, scope: str) -> set[str | None]:
        fan(*range(8)).into(planner, scope)
        return {ask(planner, scope).plan_hash for _ in range(10)}  # psycopg would prepare what is repeated

    with ThreadPoolExecutor(CLIENTS) as threads:
        found = list(threads.map(live, planners, scopes))
    assert found == [found[0]] * CLIENTS
    assert len(found[0]) == 1


def test_a_session_keeps_neither_role_nor_scope_nor_setting(
    pooled_url: str, planners: list[Planner], server_url: str
) -> None:
    with psycopg.connect(server_url, autocommit=True) as direct:
        untouched = direct.execute(SESSION).fetchone()
    for planner in planners:
        scope = fresh_scope("pooled")
        fan(1, 2, 3).into(planner, scope)
        ask(planner, scope)
    for _ in range(CLIENTS):
        with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as client:
            assert client.execute(SESSION).fetchone() == untouched


def test_without_a_scope_the_next_client_of_a_session_sees_no_row(
    pooled_url: str, planners: list[Planner]
) -> None:
    scope = fresh_scope("pooled")
    fan(1, 2, 3).into(planners[0], scope)
    with psycopg.connect(pooled_url, prepare_threshold=None) as client:
        client.execute("SET LOCAL ROLE planner_reader")
        assert client.execute("SELECT count(*) FROM planner.node").fetchone() == (0,)
        client.execute(f"SET LOCAL planner.scope_id = '{scope_id(scope)}'")
        count = client.execute("SELECT count(*) FROM planner.node").fetchone()
        assert count is not None
        assert count[0] > 0
