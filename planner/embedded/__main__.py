"""Run a supervisor: `python -m planner.embedded --home FOLDER --idle-seconds N [--durable]`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from planner.embedded import locks
from planner.embedded.layout import Layout
from planner.embedded.supervisor import Supervisor
from planner.errors import PlannerError


def main() -> int:
    """Become the supervisor of the data folder; return 1 where there is one already.

    The caller gets its exit code when the supervisor has its lock: the lock passes to a detached child,
    so that nobody has to wait for, or reap, the supervisor itself.
    """
    parser = argparse.ArgumentParser(prog="python -m planner.embedded")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--idle-seconds", type=float, required=True)
    parser.add_argument("--durable", action="store_true")
    options = parser.parse_args()
    layout = Layout(options.home)
    lock = locks.exclusive(layout.supervisor_lock, wait_seconds=30)
    if lock is None:
        return 1
    lock.write("")  # the pid of a former supervisor may be another program's
    if (supervisor := os.fork()) > 0:
        lock.write(f"{supervisor}\n")
        os._exit(0)
    os.setsid()
    try:
        Supervisor(layout, idle_seconds=options.idle_seconds, durable=options.durable).run()
    except (PlannerError, OSError) as error:
        sys.stderr.write(f"FATAL:  {error}\n")  # into the server's log, where clients look for the reason
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
