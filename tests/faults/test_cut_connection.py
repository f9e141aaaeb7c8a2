"""A connection that is cut in the middle of a statement: the call is made once all the same."""

from __future__ import annotations

from typing import get_args

import pytest

from planner.embedded import EmbeddedServer
from tests.faults.conftest import Survived
from tests.faults.crew import lost
from tests.faults.invariants import check_invariants
from tests.faults.killing import Answer, answered, calling, session
from tests.faults.operations import OPERATIONS, rows
from tests.faults.rehearsal import prepared_scopes, rehearsal
from tests.faults.stages import Watch
from tests.integration.graph import Connection
from tests.relay import Place, relay


@pytest.mark.parametrize("place", get_args(Place))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_call_whose_connection_is_cut_is_made_once_and_so_is_the_next(
    crashable: EmbeddedServer, survived: Survived, operation: str, place: Place
) -> None:
    url, expected = crashable.url, rehearsal(crashable.url, operation)
    scopes = prepared_scopes(url, [operation] * len(expected.few))
    watch = Watch()
    with relay(url) as (between, through), session(url) as conn, calling(through, operation, watch) as call:
        for stage, scope in zip(expected.few, scopes, strict=True):

            def at(reached: str, _: Connection, stage: str = stage) -> None:
                if reached == stage:
                    watch.at = None
                    between.cut(place)

            watch.begin(at)
            assert answered(call, scope) == Answer(), stage
            assert watch.at is None, stage
            missing = lost(expected.done, rows(conn, scope))
            assert answered(call, scope) == Answer(), stage
            missing += lost(expected.twice, rows(conn, scope))
            check_invariants(url, scope)
            survived(f"connection cut {place}", operation, missing)
