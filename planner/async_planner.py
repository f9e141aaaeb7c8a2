"""The front door for asynchronous callers: a planner's methods in threads, few at a time, with a way out.

Nothing is done twice: a method here is the planner's own, run in a thread for a `Call`. A task that is
cancelled cancels the statement that runs for it, and waits until its thread has ended and its connection is
back.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from planner.client import Planner
from planner.store.call import Call, calling

P = ParamSpec("P")
R = TypeVar("R")


def in_thread(
    method: Callable[Concatenate[Planner, P], R],
) -> Callable[Concatenate[AsyncPlanner, P], Coroutine[Any, Any, R]]:
    """Return a planner's method as one that is awaited; it takes, gives and raises the same."""

    @wraps(method)
    async def awaited(self: AsyncPlanner, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(partial(method, self.planner, *args, **kwargs), Call(self.deadline_ms))

    return awaited


class AsyncPlanner:
    """A planner for asynchronous callers. Make one with `connect` or `embedded`, or around a planner.

    At most `limit` calls run at a time, by default as many as the pool has connections; the others wait for
    their turn. A call with a deadline waits at most `pool_wait_ms`, then raises StoreBusy.
    """

    def __init__(self, planner: Planner, *, limit: int | None = None, deadline_ms: int | None = None) -> None:
        """Wrap a planner, which `close` closes; each call is allowed `deadline_ms`, or all that it needs."""
        self.planner = planner
        self.deadline_ms = deadline_ms
        self._turns = CapacityLimiter(limit or planner.engine.store.pool.max_size)

    @classmethod
    async def connect(cls, *args: Any, **kwargs: Any) -> Self:
        """Open a planner as `Planner.connect` does, in a thread."""
        return cls(await _in_thread(partial(Planner.connect, *args, **kwargs)))

    @classmethod
    async def embedded(cls, *args: Any, **kwargs: Any) -> Self:
        """Open a planner as `Planner.embedded` does, in a thread."""
        return cls(await _in_thread(partial(Planner.embedded, *args, **kwargs)))

    def within(self, deadline_ms: int | None) -> AsyncPlanner:
        """Return the same planner, its connections and its turns, with another deadline for each call."""
        other = AsyncPlanner(self.planner, deadline_ms=deadline_ms)
        other._turns = self._turns
        return other

    async def close(self) -> None:
        """Give back the pool and, where embedded, the server."""
        with anyio.CancelScope(shield=True):
            await _in_thread(self.planner.close)

    async def __aenter__(self) -> Self:
        """Use the planner as a context manager that closes it."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.close()

    async def run(
        self, function: Callable[..., R], *args: Any, deadline_ms: int | None = None, **kwargs: Any
    ) -> R:
        """Run a function of the planner's in a thread, when its turn comes, and return what it returns.

        Everything that it asks of the store is bound to `deadline_ms` (default: this planner's) from now on,
        and to this task: where that is cancelled, the running statement is, and the thread has ended when
        this raises. Raises what the function raises, DeadlineExceeded, StoreBusy.
        """
        allowed = self.deadline_ms if deadline_ms is None else deadline_ms
        return await self._run(partial(function, *args, **kwargs), Call(allowed))

    async def _run(self, work: Callable[[], R], call: Call) -> R:
        begun, ended = threading.Event(), threading.Event()

        def answer() -> R:
            begun.set()
            try:
                call.check()
                with calling(call):
                    return work()
            finally:
                ended.set()

        def stop() -> None:
            call.cancel()
            if begun.is_set():  # what begins only now finds its call ended
                ended.wait()

        async with self._turn(call):
            try:
                # Abandoned, so that every cancellation is seen here: anyio's shield is none to asyncio's own.
                return await _in_thread(answer, abandon_on_cancel=True)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await _in_thread(stop)
                raise

    @asynccontextmanager
    async def _turn(self, call: Call) -> AsyncIterator[None]:
        """Take a turn and give it back. Raises StoreBusy."""
        store = self.planner.engine.store
        patience = None if call.deadline_ms is None else min(store.pool_wait_ms / 1_000, call.left)
        with anyio.move_on_after(patience) as waited:
            await self._turns.acquire_on_behalf_of(call)
        if waited.cancelled_caught:
            raise store.busy()
        try:
            yield
        finally:
            self._turns.release_on_behalf_of(call)

    # Ask and deliver
    plan = in_thread(Planner.plan)
    context = in_thread(Planner.context)
    deliver = in_thread(Planner.deliver)
    read_source = in_thread(Planner.read_source)
    evidence_ref = in_thread(Planner.evidence_ref)
    verify_citation = in_thread(Planner.verify_citation)

    # Put in
    ingest = in_thread(Planner.ingest)
    ingest_text = in_thread(Planner.ingest_text)
    ingest_conversation = in_thread(Planner.ingest_conversation)
    append = in_thread(Planner.append)
    derive = in_thread(Planner.derive)

    # Ask about plans
    load = in_thread(Planner.load)
    plans = in_thread(Planner.plans)
    recorded = in_thread(Planner.recorded)
    recalled = in_thread(Planner.recalled)
    deliveries = in_thread(Planner.deliveries)
    why = in_thread(Planner.why)
    replay = in_thread(Planner.replay)
    replan = in_thread(Planner.replan)
    diff = in_thread(Planner.diff)
    whatif = in_thread(Planner.whatif)
    verify_plan = in_thread(Planner.verify_plan)
    verify_ledger = in_thread(Planner.verify_ledger)
    expect = in_thread(Planner.expect)
    expectations = in_thread(Planner.expectations)
    remove_expectation = in_thread(Planner.remove_expectation)

    # Look around
    scopes = in_thread(Planner.scopes)
    sources = in_thread(Planner.sources)
    source = in_thread(Planner.source)
    versions = in_thread(Planner.versions)
    span_row = in_thread(Planner.span_row)
    slice_text = in_thread(Planner.slice_text)
    texts = in_thread(Planner.texts)
    source_text = in_thread(Planner.source_text)
    source_use = in_thread(Planner.source_use)
    volumes = in_thread(Planner.volumes)
    overview = in_thread(Planner.overview)
    ready = in_thread(Planner.ready)

    # Keep and delete
    erase = in_thread(Planner.erase)
    prune_versions = in_thread(Planner.prune_versions)
    prunable_trace = in_thread(Planner.prunable_trace)
    prune_trace = in_thread(Planner.prune_trace)
    delete_scope = in_thread(Planner.delete_scope)
    reembed = in_thread(Planner.reembed)
    build_index = in_thread(Planner.build_index)
    build_lexical_index = in_thread(Planner.build_lexical_index)

    # Let in
    create_token = in_thread(Planner.create_token)
    tokens = in_thread(Planner.tokens)
    revoke_token = in_thread(Planner.revoke_token)
    authenticate = in_thread(Planner.authenticate)


async def _in_thread(work: Callable[[], R], *, abandon_on_cancel: bool = False) -> R:
    """Run work in a thread; the turns bound how many there are, no limiter of anyio's does beside."""
    return await to_thread.run_sync(work, abandon_on_cancel=abandon_on_cancel, limiter=CapacityLimiter(1))
