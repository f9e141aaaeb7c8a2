"""A statement that is ended, or its session, in the middle of a call: nothing is half done."""

from __future__ import annotations

import threading
from collections.abc import Callable

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

CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"

End = Callable[[Connection, Connection], None]


def time_out(conn: Connection, _: Connection) -> None:
    """Let a statement of the transaction take longer than it may."""
    conn.execute("SET LOCAL statement_timeout = 1")
    conn.execute("SELECT pg_sleep(600)").fetchone()


def cancel(conn: Connection, other: Connection) -> None:
    """Cancel a statement of the transaction while it runs."""

    def wait_and_cancel() -> None:
        while other.execute(CANCEL, (conn.info.backend_pid,)).fetchone() is None:
            pass

    thread = threading.Thread(target=wait_and_cancel)
    thread.start()
    try:
        conn.execute("SELECT pg_sleep(600)").fetchone()
    finally:
        thread.join()


def terminate(conn: Connection, other: Connection) -> None:
    """End the session."""
    other.execute("SELECT pg_terminate_backend(%s, 60000)", (conn.info.backend_pid,))


ENDS: dict[str, tuple[End, str | None]] = {
    "statement timeout": (time_out, "store.timeout"),
    "pg_cancel_backend": (cancel, "store.timeout"),
    "pg_terminate_backend": (terminate, None),
}
"""How it is ended, and the code of the call's error; what is lost in passing the call makes again."""


@pytest.mark.parametrize("fault", ENDS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_call_that_is_ended_is_undone_or_made_again_and_the_next_one_works(
    crashable: EmbeddedServer, survived: Survived, operation: str, fault: str
) -> None:
    end, code = ENDS[fault]
    url, expected = crashable.url, rehearsal(crashable.url, operation)
    scopes = prepared_scopes(url, [operation] * len(expected.few))
    watch = Watch()
    with session(url) as other, calling(url, operation, watch) as call:
        for stage, scope in zip(expected.few, scopes, strict=True):

            def at(reached: str, conn: Connection, stage: str = stage) -> None:
                if reached == stage:
                    watch.at = None
                    end(conn, other)

            watch.begin(at)
            assert answered(call, scope).code == code, stage
            found = rows(other, scope)
            missing = lost(expected.at[stage] if code else expected.done, found)
            assert answered(call, scope) == Answer(), stage
            missing += lost(expected.after_another(found), rows(other, scope))
            check_invariants(url, scope)
            survived(fault, operation, missing)
