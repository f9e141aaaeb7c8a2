"""`kill -9` of a client at every stage: what it had committed is there, and nothing else is."""

from __future__ import annotations

import pytest

from planner.embedded import EmbeddedServer
from tests.faults.conftest import Survived
from tests.faults.crew import lost
from tests.faults.invariants import check_invariants
from tests.faults.killing import (
    Answer,
    Client,
    answered,
    calling,
    judged,
    opened,
    session,
    standing,
    until_gone,
)
from tests.faults.operations import OPERATIONS, SCRUB, rows
from tests.faults.rehearsal import prepared_scopes, rehearsal
from tests.faults.stages import Watch


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_killed_client_leaves_what_it_had_committed_and_another_one_completes_it(
    crashable: EmbeddedServer, survived: Survived, operation: str
) -> None:
    url, expected = crashable.url, rehearsal(crashable.url, operation)
    scopes = prepared_scopes(url, [operation] * len(expected.at))
    starts = [(url, operation, scope, stage) for scope, stage in zip(scopes, expected.at, strict=True)]
    with standing(starts) as (clients, backends):
        for client in clients:
            client.kill()
    with session(url) as conn, calling(url, operation, Watch()) as call:
        until_gone(conn, backends)

        def missing(client: Client) -> int:
            found = rows(conn, client.scope)
            assert lost(expected.at[client.stage], found) == 0, client.stage
            assert answered(call, client.scope) == Answer()
            check_invariants(url, client.scope)
            return lost(expected.after_another(found), rows(conn, client.scope))

        for _, rows_lost in judged(missing, clients):
            survived("kill -9 of the client", operation, rows_lost)


def test_an_erasure_that_is_killed_at_its_scrub_is_completed_by_the_next(
    crashable: EmbeddedServer, survived: Survived
) -> None:
    url, expected = crashable.url, rehearsal(crashable.url, "erase")
    with opened(url) as planner, session(url) as conn:
        for stage in ("SET ROLE planner_owner", "scrub", "RESET ROLE"):
            (scope,) = prepared_scopes(url, ["erase"])
            client = Client(url, SCRUB, scope, stage)
            backend = client.stopped()
            client.kill()
            until_gone(conn, [backend])
            assert planner.erase(scope, "doc.md", scrub=True).held_back == 0
            rows_lost = lost(expected.done, rows(conn, scope))
            check_invariants(url, scope)
            survived("kill -9 of the client", SCRUB, rows_lost)
