"""What the database failed in passing is tried again: the whole attempt, a few times, after a jittered wait.

Only what may be repeated is wrapped: reads, and writes that compare with what is there before they write. A
statement that ran into its timeout is not tried again: it would again.
"""

from __future__ import annotations

import logging
from contextlib import suppress

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from planner.errors import StoreError
from planner.store.connect import Store

logger = logging.getLogger(__name__)

ATTEMPTS = 6
"""How often one piece of work is tried in all."""

PASSING = ("40001", "40P01", "57P01", "57P02", "57P03")
"""Serialization failure, deadlock, and a server that shuts down, has crashed or is starting; and class 08."""


def attempts(store: Store) -> Retrying:
    """Return tenacity's controller for one piece of work: iterate over it, or call it with a function.

    Each attempt must open its own transaction and make its own state. The error of the last one is raised.
    Where a connection was lost the pool looks over the others it holds, which a restarted server has lost
    too; the wait for a new one is the pool's.
    """

    def again(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        logger.info("attempt %d of %d failed in passing: %s", state.attempt_number, ATTEMPTS, error)
        with suppress(PoolClosed):
            store.pool.check()

    return Retrying(
        retry=retry_if_exception(is_passing),
        wait=wait_random_exponential(multiplier=0.1, max=2.0),
        stop=stop_after_attempt(ATTEMPTS),
        before_sleep=again,
        reraise=True,
    )


def is_passing(error: BaseException) -> bool:
    """Say whether the same work may succeed the next time; a pool that waited in vain has waited enough."""
    cause = error.__cause__ if isinstance(error, StoreError) else None
    if not isinstance(cause, psycopg.OperationalError) or isinstance(cause, (PoolTimeout, PoolClosed)):
        return False
    # A connection that was lost without a word has no SQLSTATE.
    return cause.sqlstate is None or cause.sqlstate in PASSING or cause.sqlstate.startswith("08")
