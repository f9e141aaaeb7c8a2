"""How a server dies under its clients."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from planner.embedded import EmbeddedServer

Inject = Callable[[EmbeddedServer, list[int]], None]


def kill_backends(server: EmbeddedServer, backends: list[int]) -> None:
    """Kill those that serve the clients, each of them: at the first the postmaster would end all others."""
    postmaster = pid_of(server)
    os.kill(postmaster, signal.SIGSTOP)
    for pid in backends:
        os.kill(pid, signal.SIGKILL)
    os.kill(postmaster, signal.SIGCONT)


def kill_postmaster(server: EmbeddedServer, _: list[int]) -> None:
    """Kill the server itself. Whoever acquires it next starts it again."""
    os.kill(pid_of(server), signal.SIGKILL)


def stop(server: EmbeddedServer, _: list[int]) -> None:
    """Shut the server down fast: it ends all transactions."""
    server.stop()


KILLS: dict[str, Inject] = {
    "kill -9 of the backends": kill_backends,
    "kill -9 of the postmaster": kill_postmaster,
}


def pid_of(server: EmbeddedServer) -> int:
    """Return the postmaster's pid."""
    pid = server.status().pid
    assert pid is not None
    return pid
