"""The server dies under clients that live on, at every stage: each call is made whole, and so is the next.

All clients of a group stand at stages of their own when it happens.
"""

from __future__ import annotations

import pytest

from planner.embedded import EmbeddedServer
from planner.errors import StoreUnavailable
from planner.store.connect import POOL_WAIT_SECONDS
from tests.faults.conftest import Survived
from tests.faults.crew import lost
from tests.faults.dying import KILLS, kill_postmaster, stop
from tests.faults.invariants import check_invariants
from tests.faults.killing import Answer, Client, judged, opened, session, standing
from tests.faults.operations import OPERATIONS, rows
from tests.faults.rehearsal import prepared_scopes, rehearsal

SHUTDOWN = "fast shutdown"

GROUPS = (("ingest", "append", "plan"), ("erase", "reembed"))


@pytest.mark.parametrize(
    ("fault", "group"),
    [*((fault, group) for fault in KILLS for group in GROUPS), (SHUTDOWN, ("append", "plan"))],
    ids=lambda named: named if isinstance(named, str) else " and ".join(named),
)
def test_a_call_whose_server_dies_is_made_once_and_so_is_the_next(
    crashable: EmbeddedServer, survived: Survived, fault: str, group: tuple[str, ...]
) -> None:
    url = crashable.url
    expected = {operation: rehearsal(url, operation) for operation in group}
    places = [(operation, stage) for operation in group for stage in expected[operation].at]
    scopes = prepared_scopes(url, [operation for operation, _ in places])
    starts = [(url, place[0], scope, place[1]) for place, scope in zip(places, scopes, strict=True)]
    with standing(starts) as (clients, backends):
        {**KILLS, SHUTDOWN: stop}[fault](crashable, backends)
        for client in clients:
            client.go()
        with crashable, session(url) as conn:

            def missing(client: Client) -> int:
                assert client.answer() == Answer(), client.stage
                first = lost(expected[client.operation].done, rows(conn, client.scope))
                client.go()
                assert client.answer() == Answer(), client.stage
                check_invariants(url, client.scope)
                return first + lost(expected[client.operation].twice, rows(conn, client.scope))

            for client, rows_lost in judged(missing, clients):
                survived(fault, client.operation, rows_lost)


def test_a_server_that_nobody_starts_again_is_named_until_somebody_does(
    crashable: EmbeddedServer, survived: Survived
) -> None:
    url = crashable.url
    expected = {operation: rehearsal(url, operation) for operation in OPERATIONS}
    scopes = dict(zip(OPERATIONS, prepared_scopes(url, list(OPERATIONS)), strict=True))
    with opened(url) as planner:
        pool = planner.engine.store.pool
        pool.timeout = 0.1
        kill_postmaster(crashable, [])
        for operation, scope in scopes.items():
            with pytest.raises(StoreUnavailable):
                OPERATIONS[operation].call(planner, scope)
        pool.timeout = POOL_WAIT_SECONDS
        with crashable, session(url) as conn:
            for operation, scope in scopes.items():
                OPERATIONS[operation].call(planner, scope)
                rows_lost = lost(expected[operation].done, rows(conn, scope))
                check_invariants(url, scope)
                survived("no server", operation, rows_lost)
