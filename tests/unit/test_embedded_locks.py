"""Locks say who is there, whatever became of who was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from planner.embedded import locks

_HOLD = """
import sys
from pathlib import Path
from planner.embedded import locks
lock = locks.shared(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_shared_locks_admit_each_other_and_no_exclusive_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = locks.shared(path), locks.shared(path)
    first.release()
    assert locks.exclusive(path) is None
    second.release()
    held = locks.exclusive(path)
    assert held is not None
    assert locks.is_held(path)
    held.release()
    assert not locks.is_held(path)


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert locks.is_held(path)
    holder.kill()
    holder.communicate()
    assert not locks.is_held(path)


def test_asking_makes_no_file(tmp_path: Path) -> None:
    assert not locks.is_held(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_written_text_replaces_the_former(tmp_path: Path) -> None:
    held = locks.exclusive(tmp_path / "lock")
    assert held is not None
    held.write("a long one\n")
    held.write("7\n")
    held.release()
    assert (tmp_path / "lock").read_text() == "7\n"
