"""Locks that the kernel drops when their holder dies (flock)."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class HeldLock:
    """A lock on an open file, held until `release`, or until the last process that inherited it ends."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, text: str) -> None:
        """Make `text` the content of the file."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text.encode(), 0)

    def touch(self) -> None:
        """Set the file's modification time to now."""
        os.utime(self._fd)

    def release(self) -> None:
        """Give the lock up."""
        os.close(self._fd)


def shared(path: Path) -> HeldLock:
    """Wait for a shared lock. Raises OSError where the file cannot be opened."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return HeldLock(fd)


def exclusive(path: Path, *, wait_seconds: float = 0) -> HeldLock | None:
    """Return an exclusive lock, or None when others held it all the time. Raises OSError as `shared`."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return HeldLock(fd)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(fd)
                return None
            time.sleep(0.02)


def is_held(path: Path) -> bool:
    """Return whether anybody holds a lock on `path`."""
    if not path.exists():
        return False
    lock = exclusive(path)
    if lock is not None:
        lock.release()
    return lock is None
