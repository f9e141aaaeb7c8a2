"""What the database failed in passing is tried again: the whole attempt, a few times, after a jittered wait.

What may be repeated is `retried`: it reads, or looks at what is there before it writes, so that the next
attempt meets what was done as done. Other writes are tried again where the attempt before is known to have
left nothing. A statement that ran into its timeout, or was cancelled, is not tried again; nor is work whose
call has ended: it wakes up, and finds that it may send nothing more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from planner.errors import StoreError
from planner.store.call import pause
from planner.store.connect import UNKNOWN, Store

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

ATTEMPTS = 6
"""How often one piece of work is tried in all."""

PASSING = ("40001", "40P01", "57P01", "57P02", "57P03")
"""Serialization failure, deadlock, and a server that shuts down, has crashed or is starting; and class 08."""


class HasStore(Protocol):
    """What work is done with: an engine, or what holds one."""

    @property
    def store(self) -> Store:
        """The store that the work opens its transactions on."""
        ...


H = TypeVar("H", bound=HasStore)


def retried(work: Callable[Concatenate[H, P], R]) -> Callable[Concatenate[H, P], R]:
    """Have work, whose first argument has the store, done again as a whole where it failed in passing.

    Where the answer to COMMIT was lost, the repeat finds nothing left to do, and says so. Retried work calls
    no other, or their attempts would multiply.
    """

    @wraps(work)
    def repeated(having: H, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return attempts(having.store)(work, having, *args, **kwargs)

    return repeated


def attempts(store: Store, *, repeatable: bool = True) -> Retrying:
    """Return tenacity's controller for one piece of work: iterate over it, or call it with a function.

    Each attempt must open its own transaction and make its own state. The error of the last one is raised.
    What is not `repeatable` ends with an attempt that may have been committed. Where a connection was lost
    the pool looks over the others it holds, which a restarted server has lost too; the wait for a new one is
    the pool's.
    """

    def again(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        logger.info("attempt %d of %d failed in passing: %s", state.attempt_number, ATTEMPTS, error)
        with suppress(PoolClosed):
            store.pool.check()

    return Retrying(
        retry=retry_if_exception(is_passing if repeatable else is_undone),
        wait=wait_random_exponential(multiplier=0.1, max=2.0),
        sleep=pause,
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


def is_undone(error: BaseException) -> bool:
    """Say whether the same work may succeed the next time, and has left nothing this time."""
    return is_passing(error) and isinstance(error, StoreError) and error.detail.get("outcome") != UNKNOWN
