"""Asynchronous callers: the planner's own methods in threads, few at a time, each with a way out."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from threading import Barrier, Lock
from typing import Any

import anyio
import pytest

from planner import AsyncPlanner, Planner, Settings
from planner.embedders import CallableEmbedder
from planner.errors import CallCancelled, DeadlineExceeded, RequestError, StoreBusy, UnknownScope
from planner.store.call import current
from tests.integration.graph import MODEL, Connection, circle, circle_embedder, fan
from tests.integration.repeated import WAITING
from tests.integration.test_calls import locked

NOT_AWAITED = {"connect", "embedded", "from_pool", "close", "check_expectations"}
"""What makes or ends a planner, and what yields as it goes."""


@pytest.fixture
def pair(database_url: str) -> Callable[..., Any]:
    """Return a function that opens an asynchronous planner of two connections on a small scope `s`."""

    @asynccontextmanager
    async def opened(
        embed: Callable[[list[str]], Any] = circle, **settings: int
    ) -> AsyncIterator[AsyncPlanner]:
        chosen = Settings(pool_size=2, **settings)
        embedder = CallableEmbedder(MODEL, 2, embed)
        async with await AsyncPlanner.connect(database_url, settings=chosen, embedder=embedder) as planner:
            fan(0, 30).into(Planner.from_pool(_pool(planner), embedder=circle_embedder()), "s")
            yield planner

    return opened


def _pool(planner: AsyncPlanner) -> Any:
    return planner.planner.engine.store.pool


def idle(planner: AsyncPlanner) -> bool:
    """Say whether every connection of the pool is back."""
    stats = _pool(planner).get_stats()
    return bool(stats["pool_available"] == stats["pool_size"])


async def waiting(observer: Connection, backends: int = 1) -> None:
    """Wait until so many backends of the planner wait for a lock."""
    while len(await asyncio.to_thread(lambda: observer.execute(WAITING).fetchall())) < backends:
        await asyncio.sleep(0.01)


def test_every_public_method_of_the_planner_is_awaited_with_the_same_parameters() -> None:
    names = {name for name in vars(AsyncPlanner) if not name.startswith("_")}
    methods = {name for name, _ in inspect.getmembers(Planner, callable) if not name.startswith("_")}
    assert methods - names == NOT_AWAITED - names
    for name in methods - NOT_AWAITED:
        assert inspect.signature(getattr(AsyncPlanner, name)) == inspect.signature(getattr(Planner, name))
        assert inspect.iscoroutinefunction(getattr(AsyncPlanner, name))


def test_it_answers_and_refuses_as_the_planner_does(pair: Callable[..., Any]) -> None:
    async def main() -> None:
        async with pair() as planner:
            made = await planner.plan("s", "at 0")
            assert await planner.load(made.ref) == planner.planner.load(made.ref)
            assert (await planner.sources("s", limit=1)).next_after == "n0.txt"
            with pytest.raises(UnknownScope):
                await planner.sources("nowhere")
            with pytest.raises(RequestError, match="deadline_ms"):
                await planner.within(-1).sources("s")
            with pytest.raises(RequestError, match="deadline_ms"):
                await planner.run(planner.planner.sources, "s", deadline_ms=0)
            assert current() is None

    asyncio.run(main())


def test_twenty_plans_over_two_connections_run_two_at_a_time(pair: Callable[..., Any]) -> None:
    both, lock, inside, most = Barrier(2), Lock(), 0, 0

    def embed(texts: list[str]) -> Any:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        both.wait(60)  # it takes two
        with lock:
            inside -= 1
        return circle(texts)

    async def main() -> None:
        async with pair(embed) as planner:
            made = await asyncio.gather(*(planner.plan("s", "at 0") for _ in range(20)))
            assert len({plan.plan_hash for plan in made}) == 1
            assert idle(planner)

    asyncio.run(main())
    assert most == 2


@pytest.mark.parametrize("how", ["task", "timeout", "scope"])
def test_a_cancelled_task_cancels_its_statement_and_ends_when_the_connection_is_back(
    pair: Callable[..., Any], other: Connection, observer: Connection, how: str
) -> None:
    async def cancelled(planner: AsyncPlanner) -> None:
        """Have a plan that waits for a lock cancelled."""
        if how == "scope":
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(planner.plan, "s", "at 0")
                await waiting(observer)
                tasks.cancel_scope.cancel()
            return
        task = asyncio.create_task(planner.plan("s", "at 0"))
        await waiting(observer)
        if how == "timeout":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await task
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    async def main() -> None:
        async with pair() as planner:
            with locked(other, "node"):
                await cancelled(planner)
                assert idle(planner)
                assert observer.execute(WAITING).fetchall() == []
            assert len((await planner.plan("s", "at 0")).spans) == 2

    asyncio.run(main())


def test_a_task_that_is_cancelled_before_its_turn_asks_nothing(
    pair: Callable[..., Any], other: Connection, observer: Connection
) -> None:
    asked: list[Any] = []

    async def main() -> None:
        async with pair() as planner:
            with locked(other, "node"):
                running = [asyncio.create_task(planner.plan("s", "at 0")) for _ in range(2)]
                await waiting(observer, 2)
                late = asyncio.create_task(planner.run(asked.append, 1))
                await asyncio.sleep(0.05)
                late.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await late
            assert [len(plan.spans) for plan in await asyncio.gather(*running)] == [2, 2]
            await planner.run(asked.append, 2)

    asyncio.run(main())
    assert asked == [2]


def test_a_task_that_is_cancelled_at_any_step_gives_back_its_turn_and_its_connection(
    pair: Callable[..., Any],
) -> None:
    async def main() -> None:
        async with pair() as planner:
            for steps in range(60):
                task = asyncio.create_task(planner.sources("s"))
                for _ in range(steps % 12):
                    await asyncio.sleep(0)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            assert planner._turns.borrowed_tokens == 0
            assert idle(planner)
            assert (await planner.sources("s")).sources

    asyncio.run(main())


def test_a_deadline_holds_for_each_call_and_for_a_single_one(
    pair: Callable[..., Any], other: Connection
) -> None:
    async def main() -> None:
        async with pair() as planner:
            with locked(other, "node"):
                for late in (
                    planner.within(100).plan("s", "at 0"),
                    planner.run(planner.planner.plan, "s", "at 0", deadline_ms=100),
                ):
                    with pytest.raises(DeadlineExceeded, match="100 ms"):
                        await late
            assert idle(planner)

    asyncio.run(main())


def test_a_call_with_a_deadline_is_not_kept_waiting_for_its_turn(
    pair: Callable[..., Any], other: Connection, observer: Connection
) -> None:
    async def main() -> None:
        async with pair(pool_wait_ms=20) as planner:
            with locked(other, "node"):
                running = [asyncio.create_task(planner.plan("s", "at 0")) for _ in range(2)]
                await waiting(observer, 2)
                with pytest.raises(StoreBusy) as caught:
                    await planner.within(60_000).sources("s")
                assert caught.value.detail["retry_after"] == 1
                patient = asyncio.create_task(planner.sources("s"))
                await asyncio.sleep(0.1)
            assert (await patient).sources
            await asyncio.gather(*running)

    asyncio.run(main())


def test_work_that_ignores_a_cancellation_is_waited_for(pair: Callable[..., Any]) -> None:
    done = []

    async def main() -> None:
        async with pair() as planner:
            begun = asyncio.Event()
            loop = asyncio.get_running_loop()

            def work() -> None:
                call = current()
                assert call is not None
                loop.call_soon_threadsafe(begun.set)
                call.pause(60.0)
                with pytest.raises(CallCancelled):
                    planner.planner.sources("s")
                done.append(1)

            task = asyncio.create_task(planner.run(work))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert done == [1]

    asyncio.run(main())
