"""The client's side: need the server, and it is there."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from planner.embedded import binaries, cluster, identity, locks, postmaster
from planner.embedded.layout import Layout
from planner.errors import EmbeddedServerError

START_SECONDS = 120.0  # recovery after a kill, on a busy disk, takes its time
_PATIENCE_SECONDS = 2 * START_SECONDS


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of an embedded server; `pid`, `version` are those of a server that answers."""

    running: bool
    pid: int | None
    data_dir: Path
    socket_dir: Path
    version: str | None
    pinned: bool

    def to_dict(self) -> dict[str, object]:
        """Return the status as JSON data."""
        return {**asdict(self), "data_dir": str(self.data_dir), "socket_dir": str(self.socket_dir)}


class EmbeddedServer:
    """The server of one data folder, shared by all processes that use the folder.

    `data_dir` defaults to the platform's folder for user data. `durable=False` gives up fsync, for tests.
    The server stays for `idle_seconds` after its last client, for ever when it was pinned by `start`.
    Thread-safe. As a context manager it is acquired. Each method that touches the server raises
    EmbeddedServerError, or EmbeddedUnavailable where the `embedded` extra is not installed.
    """

    def __init__(
        self, data_dir: Path | None = None, *, durable: bool = True, idle_seconds: float = 60.0
    ) -> None:
        self._layout = Layout.at(data_dir)
        self._durable = durable
        self._idle_seconds = idle_seconds
        self._guard = threading.Lock()
        self._client_lock: locks.HeldLock | None = None
        self._uses = 0

    def __enter__(self) -> EmbeddedServer:
        """Acquire."""
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        """Release."""
        self.release()

    @property
    def url(self) -> str:
        """The URL of the database, over the Unix socket."""
        return postmaster.url(self._layout)

    @property
    def psql_path(self) -> Path:
        """The bundled psql."""
        return binaries.program("psql")

    def acquire(self) -> None:
        """Be a client: start the server unless it runs, and keep it until `release`, or until we die."""
        with self._guard, self._starting():
            lock = self._client_lock or locks.shared(self._layout.clients_lock)
            try:
                self._ensure_running()
            except BaseException:
                if self._client_lock is None:
                    lock.release()
                raise
            self._client_lock = lock
            self._uses += 1

    def release(self) -> None:
        """Undo one `acquire`."""
        with self._guard:
            if self._client_lock is None:
                raise RuntimeError("release() without acquire()")
            self._uses -= 1
            if self._uses == 0:
                self._client_lock.touch()
                self._client_lock.release()
                self._client_lock = None

    def start(self) -> None:
        """Start the server unless it runs, and pin it: it stays until `stop`."""
        with self, self._naming_files():
            self._layout.pin.touch()

    def stop(self) -> None:
        """End the server, whoever uses it, and the pin. Without a server there is nothing to do."""
        with self._naming_files():
            if not self._layout.start_lock.exists():
                return
        with self._guard, self._starting():
            self._layout.pin.unlink(missing_ok=True)
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while locks.is_held(self._layout.supervisor_lock):
                self._tell_supervisor_to_end()
                if time.monotonic() > deadline:
                    raise EmbeddedServerError(f"the embedded server did not stop; see {self._layout.log}")
                time.sleep(0.05)
            if orphan := postmaster.find(self._layout):
                postmaster.end(self._layout, orphan)

    def status(self) -> ServerStatus:
        """Return the server's state, without starting it."""
        version = postmaster.answering_version(self._layout)
        named = postmaster.read_pid_file(self._layout)
        with self._naming_files():
            pinned = self._layout.pin.exists()
        return ServerStatus(
            running=version is not None,
            pid=named.pid if named and version else None,
            data_dir=self._layout.home,
            socket_dir=(named and named.socket_dir) or self._layout.socket_dir,
            version=version,
            pinned=pinned,
        )

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        """Hold the start lock."""
        with self._naming_files():
            self._layout.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(self._layout.start_lock, timeout=_PATIENCE_SECONDS)
            try:
                lock.acquire()
            except Timeout:
                raise EmbeddedServerError(
                    f"another process has been starting or stopping the server of {self._layout.home} for "
                    f"{_PATIENCE_SECONDS:.0f} s; see {self._layout.log}"
                ) from None
            try:
                yield
            finally:
                lock.release()

    @contextlib.contextmanager
    def _naming_files(self) -> Iterator[None]:
        """Name the file that the system refuses us."""
        try:
            yield
        except OSError as error:
            raise EmbeddedServerError(
                f"the embedded server cannot use {error.filename or self._layout.home}: {error.strerror}; "
                "make room or give access, or set PLANNER_DATA_DIR to another folder"
            ) from error

    def _ensure_running(self) -> None:
        """Return when our server answers and a supervisor is with it. The caller holds the start lock."""
        deadline = time.monotonic() + START_SECONDS
        spawned = False
        while True:
            supervised = locks.is_held(self._layout.supervisor_lock)
            if supervised and postmaster.answering_version(self._layout):
                return
            if not supervised and not spawned:
                cluster.prepare(self._layout, identity.choose(self._layout.cluster), durable=self._durable)
                self._spawn_supervisor()
                spawned = True
            elif not supervised or time.monotonic() > deadline:
                raise self._failure()
            else:
                time.sleep(0.05)

    def _spawn_supervisor(self) -> None:
        """Return when the supervisor has its lock. What it and the server say goes into a fresh log."""
        if postmaster.find(self._layout) is None and self._layout.log.exists():
            self._layout.log.replace(self._layout.log.with_suffix(".log.1"))
        command = [sys.executable, "-P", "-m", "planner.embedded", "--home", str(self._layout.home)]
        options = ["--idle-seconds", str(self._idle_seconds), *(["--durable"] if self._durable else [])]
        with self._layout.log.open("ab") as log:
            subprocess.run(  # noqa: S603 - our own interpreter, no shell
                [*command, *options],
                cwd=self._layout.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                check=False,
            )

    def _failure(self) -> EmbeddedServerError:
        said = binaries.last_words(self._layout.log.read_text(errors="replace"))
        return EmbeddedServerError(
            f"the embedded server did not start: {said} (log: {self._layout.log})", log=str(self._layout.log)
        )

    def _tell_supervisor_to_end(self) -> None:
        """Send SIGTERM to the holder of the supervisor's lock, if it has said who it is already."""
        if pid := self._layout.supervisor_lock.read_text().strip():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)
