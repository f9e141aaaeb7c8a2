"""One caller's time and way out: a deadline and a cancellation that reach every statement sent for the call.

The call is a context variable: what runs inside `calling`, in this thread or in one that is given a copy of
the context, asks `current`. Without a call nothing has a deadline, and nothing can be cancelled.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import psycopg

from planner.errors import CallCancelled, DeadlineExceeded, RequestError

Connection = psycopg.Connection[Any]

LONGEST_MS = 86_400_000
"""A day."""

CLOCKS_SECONDS = 0.05
"""How much earlier the server's clock may be through with a timeout than ours."""

CANCEL_SECONDS = 5.0
"""How long a request to cancel may take to reach the server."""

AGAIN_SECONDS = 0.05
"""After how long a request to cancel is sent again: it may have come before its statement."""

FAREWELL_MS = 1_000
"""The time in which the failure of a call that has ended is recorded."""

logger = logging.getLogger(__name__)


class Call:
    """What one caller allows: until when statements may run for it, and whether it still wants them."""

    def __init__(self, deadline_ms: int | None = None) -> None:
        """Begin; the deadline is so many milliseconds from now, None is none. Raises RequestError."""
        if deadline_ms is not None and not 1 <= deadline_ms <= LONGEST_MS:
            raise RequestError(
                f"deadline_ms = {deadline_ms}: a call is allowed 1 to {LONGEST_MS} ms", field="deadline_ms"
            )
        self.deadline_ms = deadline_ms
        self._deadline = math.inf if deadline_ms is None else time.monotonic() + deadline_ms / 1_000
        self._is_cancelled = False
        self._changed = threading.Condition()
        self._sending = set[Connection]()

    @property
    def left(self) -> float:
        """The seconds until the deadline: 0 behind it, infinite where there is none."""
        return max(0.0, self._deadline - time.monotonic())

    def ended(self, early: float = 0.0) -> DeadlineExceeded | CallCancelled | None:
        """Return why nothing may run for this call any more; None where it may.

        A deadline that is at most `early` seconds away counts as passed.
        """
        if self._is_cancelled:
            return CallCancelled("the caller cancelled the call")
        if self.left <= early:
            return DeadlineExceeded(
                f"the call was allowed {self.deadline_ms} ms, which have passed; allow more, or ask for less",
                deadline_ms=self.deadline_ms,
            )
        return None

    def check(self) -> None:
        """Raise CallCancelled or DeadlineExceeded where the call has ended."""
        if (error := self.ended()) is not None:
            raise error

    def within(self, limit_ms: int) -> int:
        """Return what the call leaves of a limit in milliseconds; 0 is no limit, as for PostgreSQL."""
        if self.deadline_ms is None:
            return limit_ms
        left = max(1, math.ceil(self.left * 1_000))
        return min(limit_ms, left) if limit_ms else left

    @contextmanager
    def sending(self, conn: Connection) -> Iterator[None]:
        """Let `cancel` end what is sent on a connection meanwhile. Raises CallCancelled, DeadlineExceeded."""
        with self._changed:
            self.check()
            self._sending.add(conn)
        try:
            yield
        finally:
            # A request to cancel holds the lock: none is under way when the connection serves others.
            with self._changed:
                self._sending.discard(conn)
                self._changed.notify_all()

    def cancel(self) -> None:
        """End the call, from any thread: cancel the statement that runs for it, and let it send no other.

        Returns when the statement has ended, or the server cannot be asked to end it. What is being committed
        is committed.
        """
        with self._changed:
            self._is_cancelled = True
            self._changed.notify_all()
            while self._sending:
                for conn in self._sending:
                    try:
                        conn.cancel_safe(timeout=CANCEL_SECONDS)
                    except psycopg.Error as error:
                        logger.info("a statement could not be cancelled: %s", error)
                        return
                self._changed.wait(AGAIN_SECONDS)

    def pause(self, seconds: float) -> None:
        """Sleep, but no longer than the call lasts."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_cancelled, min(seconds, self.left))


_CALL: ContextVar[Call | None] = ContextVar("planner_call", default=None)


def current() -> Call | None:
    """Return the call that is being answered, None outside of one."""
    return _CALL.get()


@contextmanager
def calling(call: Call) -> Iterator[Call]:
    """Do what follows for a call; inside another, for this one alone."""
    token = _CALL.set(call)
    try:
        yield call
    finally:
        _CALL.reset(token)


def sending(conn: Connection) -> AbstractContextManager[None]:
    """Send a statement for the current call, if there is one. Raises CallCancelled, DeadlineExceeded."""
    call = current()
    return nullcontext() if call is None else call.sending(conn)


@contextmanager
def farewell() -> Iterator[None]:
    """Give what has to be recorded of a call that has ended a moment of its own."""
    call = current()
    if call is None or call.ended() is None:
        yield
    else:
        with calling(Call(FAREWELL_MS)):
            yield


def pause(seconds: float) -> None:
    """Sleep, but no longer than the current call lasts."""
    call = current()
    if call is None:
        time.sleep(seconds)
    else:
        call.pause(seconds)
