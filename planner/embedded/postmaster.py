"""The server process: found, started, asked whether it answers, ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from planner.embedded import binaries, cluster
from planner.embedded.identity import Identity
from planner.embedded.layout import PORT, Layout

_FAST, _IMMEDIATE = signal.SIGINT, signal.SIGQUIT  # PostgreSQL's shutdown modes


@dataclass(frozen=True, slots=True)
class PidFile:
    """What `postmaster.pid` says; true only as long as that process lives."""

    pid: int
    socket_dir: Path | None


def read_pid_file(layout: Layout) -> PidFile | None:
    """Return the content of the pid file, or None where there is none or it makes no sense."""
    try:
        lines = (layout.cluster / "postmaster.pid").read_text().splitlines()
        return PidFile(int(lines[0]), Path(lines[4]) if len(lines) > 4 and lines[4] else None)
    except (OSError, ValueError, IndexError):
        return None


def find(layout: Layout) -> psutil.Process | None:
    """Return the live server of this data directory. A pid that now is another program's is not it."""
    named = read_pid_file(layout)
    try:
        process = psutil.Process(named.pid) if named and named.pid > 0 else None
        if process is None or _is_zombie(process):
            return None
        return process if process.cmdline()[1:3] == ["-D", str(layout.cluster)] else None
    except psutil.Error:
        return None


def launch(layout: Layout, identity: Identity, *, durable: bool) -> psutil.Popen:
    """Start a server as our child; it logs to our stderr. The caller has made sure that none runs."""
    socket_dir = cluster.make_socket_dir(layout, identity)
    _disown_pid_file(layout)
    options = cluster.server_options(socket_dir, durable=durable)
    return psutil.Popen(
        [*identity.prefix, binaries.program("postgres"), "-D", str(layout.cluster), *options],
        cwd=layout.home,
        env=binaries.environment(),
    )


def ended(process: psutil.Process, *, within_seconds: float) -> bool:
    """Wait for the server's end. A zombie has ended, though an init that reaps nothing may keep it."""
    try:
        process.wait(timeout=within_seconds)
        return True
    except psutil.TimeoutExpired:
        return _is_zombie(process)


def end(layout: Layout, process: psutil.Process) -> None:
    """Shut the server down fast; harder when it takes a minute; remove its socket folder."""
    named = read_pid_file(layout)
    for how, seconds in ((_FAST, 60), (_IMMEDIATE, 10), (signal.SIGKILL, 10)):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(how)
        if any(ended(process, within_seconds=0.1) for _ in range(10 * seconds)):
            break
    for folder in {layout.socket_dir, (named and named.socket_dir) or layout.socket_dir}:
        shutil.rmtree(folder, ignore_errors=True)


def url(layout: Layout) -> str:
    """Return the URL of the running server, or of the next one."""
    named = read_pid_file(layout)
    folder = (named and named.socket_dir) or layout.socket_dir
    where = f"host={quote(str(folder), safe='/')}&port={PORT}"
    return f"postgresql://{cluster.USER}@/{cluster.DATABASE}?{where}"


def answering_version(layout: Layout) -> str | None:
    """Return the version of the server that answers on our socket and serves our files, or None."""
    try:
        with psycopg.connect(url(layout), connect_timeout=10, autocommit=True) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
            served = Path(row[0]) if row else None
            return connection.info.parameter_status("server_version") if served == layout.cluster else None
    except psycopg.OperationalError:
        return None


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _disown_pid_file(layout: Layout) -> None:
    """Let PostgreSQL overrule a pid file whose pid is another program's by now.

    It takes the pid of its own parent for stale, so ours is put there. The file is kept: its last lines
    name the shared memory by which PostgreSQL notices backends that outlive their killed server.
    """
    path = layout.cluster / "postmaster.pid"
    if not path.exists():
        return
    if read_pid_file(layout) is None:  # cut short, by a full disk say; PostgreSQL would refuse it
        path.unlink()
        return
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([f"{os.getpid()}\n", *lines[1:]]))
