"""The supervisor: parent of the server, there to end it when no client is left."""

from __future__ import annotations

import signal
import time

import psutil
from filelock import FileLock, Timeout

from planner.embedded import identity, locks, postmaster
from planner.embedded.layout import Layout

_TICK_SECONDS = 0.25
_GHOST_SECONDS = 120.0  # how long the backends of a killed server may take to notice
_GHOSTS = "pre-existing shared memory block"


class Supervisor:
    """Runs one server until it ends, is told to end, or has had no client for `idle_seconds`."""

    def __init__(self, layout: Layout, *, idle_seconds: float, durable: bool) -> None:
        self._layout = layout
        self._idle_seconds = idle_seconds
        self._durable = durable
        self._told_to_end = False
        self._last_use = time.monotonic()
        self._last_touch = 0
        self._held: tuple[object, ...] = ()

    def run(self) -> None:
        """Start a server, or adopt one whose supervisor was killed, and stay with it."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(self, "_told_to_end", True))
        process = postmaster.find(self._layout) or self._launch()
        while not postmaster.ended(process, within_seconds=_TICK_SECONDS):
            if self._told_to_end or self._unused():
                break
        postmaster.end(self._layout, process)

    def _launch(self) -> psutil.Process:
        """Start a server, again and again while backends of a killed one hold its shared memory."""
        who = identity.choose(self._layout.cluster)
        deadline = time.monotonic() + _GHOST_SECONDS
        while True:
            known = self._layout.log.stat().st_size
            process = postmaster.launch(self._layout, who, durable=self._durable)
            while not postmaster.ended(process, within_seconds=_TICK_SECONDS):
                if self._told_to_end or postmaster.answering_version(self._layout):
                    return process
            said = self._layout.log.read_bytes()[known:].decode(errors="replace")
            if _GHOSTS not in said or time.monotonic() > deadline:
                return process

    def _unused(self) -> bool:
        """Return whether to end now. From then on we hold every lock, so that no client can come in."""
        held = locks.is_held(self._layout.clients_lock)
        touched = self._layout.clients_lock.stat().st_mtime_ns
        if held or touched != self._last_touch or self._layout.pin.exists():
            self._last_touch = touched
            self._last_use = time.monotonic()
        if time.monotonic() - self._last_use < self._idle_seconds:
            return False
        start = FileLock(self._layout.start_lock, timeout=0)
        try:
            start.acquire()
        except Timeout:  # somebody is coming
            return False
        clients = locks.exclusive(self._layout.clients_lock)
        if clients is None or self._layout.pin.exists():
            start.release()
            return False
        self._held = (start, clients)
        return True
