"""The parts that the pipeline composes, and the watch that times its stages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from planner.ports import Clock, Embedder, TokenCounter
from planner.settings import Settings
from planner.store.connect import Store
from planner.trace.record import Record


def utc_now() -> datetime:
    """Return the time of the system's clock, in UTC."""
    return datetime.now(UTC)


def unobserved(record: Record) -> None:
    """Let a plan pass."""


@dataclass(frozen=True)
class Engine:
    """A store, a configuration, and what a caller may bring: embedder, counters, clock, the actor's name.

    `observe` is called with each plan as it was recorded, a refused or failed one too; it must not raise.
    """

    store: Store
    settings: Settings
    embedder: Callable[[], Embedder]
    counters: Mapping[str, TokenCounter] = field(default_factory=dict)
    clock: Clock = utc_now
    actor: str = "library"
    observe: Callable[[Record], None] = unobserved


def once(make: Callable[[], Embedder]) -> Callable[[], Embedder]:
    """Return a function that makes the embedder when it is first asked for, once, whichever thread asks."""
    lock, made = threading.Lock(), list[Embedder]()

    def get() -> Embedder:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    return get


class Stopwatch:
    """Times the stages of one call, in milliseconds; a stage entered twice adds up."""

    def __init__(self) -> None:
        """Start with no stage."""
        self.timings: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time what runs inside, also when it raises."""
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed = (time.perf_counter() - started) * 1_000
            self.timings[stage] = round(self.timings.get(stage, 0.0) + elapsed, 3)
