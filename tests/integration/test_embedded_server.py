"""The life of the embedded server: real processes, killed in every way that leaves something behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from planner.embedded import EmbeddedServer, locks
from planner.errors import EmbeddedServerError

Client = Callable[[], "subprocess.Popen[str]"]
Processes = Callable[[], list[psutil.Process]]


def said(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def until(condition: Callable[[], bool]) -> None:
    """Wait for what must come; the bound only keeps a broken test from waiting for ever."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come within a minute"
        time.sleep(0.05)


def value(server: EmbeddedServer, statement: str) -> object:
    with psycopg.connect(server.url, autocommit=True) as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    return row[0]


def supervisor_of(home: Path) -> psutil.Process:
    return psutil.Process(int((home / "supervisor.lock").read_text()))


@pytest.fixture
def server(home: Path) -> EmbeddedServer:
    return EmbeddedServer(home, durable=False, idle_seconds=0.5)


@pytest.fixture(scope="module")
def running(initialised: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """Give a server as users have it: durable, and held by this process."""
    home = tmp_path_factory.mktemp("running") / "home"
    shutil.copytree(initialised, home)
    with EmbeddedServer(home) as server:
        yield server
    server.stop()


def test_clients_that_start_at_once_share_one_server(home: Path, client: Client) -> None:
    shutil.rmtree(home / "data")  # so that they also race for initdb
    clients = [client() for _ in range(3)]
    assert len({said(process) for process in clients}) == 1


def test_server_ends_after_its_last_client_was_killed(
    server: EmbeddedServer, client: Client, server_processes: Processes
) -> None:
    first, second = client(), client()
    pid = said(first)
    said(second)
    first.kill()
    first.wait()
    with server:  # a third one, while the second still lives
        assert server.status().pid == pid
    second.kill()
    second.wait()
    until(lambda: not server_processes())
    assert not server.status().running
    assert not server.status().socket_dir.exists()


def test_server_outlives_its_idle_time_while_a_client_lives(server: EmbeddedServer, client: Client) -> None:
    pid = said(client())
    time.sleep(1.5)  # three times the idle time
    assert server.status().pid == pid


def test_pinned_server_stays_without_clients_until_it_is_stopped(
    server: EmbeddedServer, server_processes: Processes
) -> None:
    server.start()
    time.sleep(1.5)
    status = server.status()
    assert (status.running, status.pinned, status.version) == (True, True, "18.6")
    server.stop()
    after = server.status()
    assert (after.running, after.pinned, after.pid, after.version) == (False, False, None, None)
    assert server_processes() == []


def test_stopping_is_idempotent_and_makes_no_folder(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "absent")
    server.stop()
    server.stop()
    assert not (tmp_path / "absent").exists()


def test_committed_rows_survive_a_killed_server(home: Path) -> None:
    with EmbeddedServer(home, idle_seconds=0.5) as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        os.kill(server.status().pid or 0, signal.SIGKILL)
        with server:
            assert value(server, "SELECT answer FROM kept") == 42


def test_server_starts_again_while_a_backend_of_the_killed_one_still_computes(server: EmbeddedServer) -> None:
    computing = threading.Event()

    def compute() -> None:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(server.url) as connection:
            computing.set()
            connection.execute("SELECT count(*) FROM generate_series(1, 8_000_000)")

    with server:
        thread = threading.Thread(target=compute)
        thread.start()
        computing.wait()
        until(lambda: value(server, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'") == 2)
        os.kill(server.status().pid or 0, signal.SIGKILL)
        with server:
            assert value(server, "SELECT 1") == 1
        thread.join()


def test_server_whose_supervisor_was_killed_gets_another(
    server: EmbeddedServer, home: Path, server_processes: Processes
) -> None:
    with server:
        pid, first = server.status().pid, supervisor_of(home)
        first.kill()
        until(lambda: not locks.is_held(home / "supervisor.lock"))
        with server:
            assert server.status().pid == pid
            assert supervisor_of(home).pid != first.pid
    until(lambda: not server_processes())


def test_pid_file_that_names_another_program_is_overruled(server: EmbeddedServer, home: Path) -> None:
    with server:
        pid_file = (home / "data" / "postmaster.pid").read_text().splitlines(keepends=True)
        socket_dir = server.status().socket_dir
    server.stop()
    (home / "data" / "postmaster.pid").write_text("".join([f"{os.getpid()}\n", *pid_file[1:]]))
    socket_dir.mkdir(mode=0o700)
    (socket_dir / ".s.PGSQL.5432.lock").write_text(f"{os.getpid()}\n")
    with server:
        assert server.status().pid != os.getpid()


def test_pid_file_cut_short_is_overruled(server: EmbeddedServer, home: Path) -> None:
    (home / "data" / "postmaster.pid").write_text("")
    with server:
        assert server.status().running


def test_initdb_that_was_left_alone_leaves_nothing_half_made(
    server: EmbeddedServer, home: Path, client: Client, server_processes: Processes
) -> None:
    shutil.rmtree(home / "data")
    killed = client()
    until(lambda: any(home.glob(".initdb-*")))
    killed.kill()
    killed.wait()
    until(lambda: not server_processes())  # initdb itself was not killed
    assert not (home / "data").exists()
    with server:
        assert value(server, "SELECT current_database()") == "planner"
    assert not any(home.glob(".initdb-*"))


def test_data_folder_may_have_a_long_name(home: Path) -> None:
    deep = home / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    (home / "data").rename(deep / "data")
    server = EmbeddedServer(deep, durable=False, idle_seconds=0.5)
    with server:
        assert value(server, "SHOW data_directory") == str(deep / "data")
    server.stop()


def test_server_is_reached_by_its_private_socket_alone(running: EmbeddedServer) -> None:
    assert value(running, "SHOW listen_addresses") == ""
    assert running.status().socket_dir.stat().st_mode & 0o777 == 0o700


def test_socket_folder_of_somebody_else_is_refused(server: EmbeddedServer) -> None:
    socket_dir = server.status().socket_dir
    elsewhere = Path(tempfile.mkdtemp())
    socket_dir.symlink_to(elsewhere)
    try:
        with pytest.raises(EmbeddedServerError, match=f"socket folder {socket_dir}"):
            server.acquire()
    finally:
        socket_dir.unlink()
        elsewhere.rmdir()


def test_server_writes_through_to_the_disk_unless_told_otherwise(running: EmbeddedServer) -> None:
    names = ("fsync", "full_page_writes", "synchronous_commit")
    assert [value(running, f"SHOW {name}") for name in names] == ["on", "on", "on"]


def test_server_inherits_no_file_of_its_client(server: EmbeddedServer, home: Path) -> None:
    ours = home / "ours"
    with ours.open("w") as file:
        os.set_inheritable(file.fileno(), True)
        with server:
            for process in (psutil.Process(server.status().pid), supervisor_of(home)):
                assert str(ours) not in {opened.path for opened in process.open_files()}


def test_server_heeds_no_variable_that_redirects_postgres(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("PGDATA", "absent"), ("PGPORT", "1"), ("PGDATABASE", "other"), ("PGUSER", "other")):
        monkeypatch.setenv(name, text)
    with server:
        assert value(server, "SELECT current_user") == "planner"


def test_bundled_psql_reaches_the_server(running: EmbeddedServer) -> None:
    command = [running.psql_path, running.url, "-Atc", "SELECT 6 * 7"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "42\n"


def test_data_of_another_major_version_is_refused_and_named(server: EmbeddedServer, home: Path) -> None:
    (home / "data" / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedServerError, match="PostgreSQL 17, the embedded server is 18"):
        server.acquire()
    (home / "data" / "PG_VERSION").write_text("18\n")


def test_data_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(EmbeddedServerError, match="not a PostgreSQL data directory"):
        EmbeddedServer(tmp_path).acquire()


def test_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EmbeddedServerError, match=f"{tmp_path}/file"):
        EmbeddedServer(tmp_path / "file" / "home").acquire()


def test_server_that_does_not_start_says_why(server: EmbeddedServer, home: Path) -> None:
    conf = home / "data" / "postgresql.conf"
    conf.write_text(conf.read_text() + "\nno_such_setting = 1\n")
    with pytest.raises(EmbeddedServerError, match=r"postgresql\.conf.* contains errors .*server\.log"):
        server.acquire()
    assert not server.status().socket_dir.exists()


def test_released_once_too_often_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        EmbeddedServer(tmp_path).release()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mounted = tmp_path / "disk"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(mounted)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield mounted
    subprocess.run(["umount", str(mounted)], check=True)


def test_full_disk_is_named_and_leaves_nothing_half_made(small_disk: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="No space left on device"):
        EmbeddedServer(small_disk / "home").acquire()
    assert not list((small_disk / "home").glob("*data*"))
    assert not list((small_disk / "home").glob(".initdb-*"))


root_on_linux = pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux", reason="only root on Linux has to become another user"
)


@root_on_linux
def test_root_keeps_its_files_where_user_namespaces_are_allowed(server: EmbeddedServer, home: Path) -> None:
    allowed = subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False)
    if allowed.returncode != 0:
        pytest.skip("user namespaces are denied here")
    with server:
        assert (home / "data").stat().st_uid == 0
        assert server.status().running


@root_on_linux
def test_root_becomes_nobody_where_user_namespaces_are_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not installed here")
    version = [EmbeddedServer().psql_path, "--version"]
    as_nobody = [setpriv, "--reuid=nobody", "--clear-groups", "--", *version]
    if subprocess.run(as_nobody, capture_output=True, check=False).returncode != 0:
        pytest.skip("nobody may not enter the folder of the installed packages here")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        (Path(folder) / "bin").mkdir()
        (Path(folder) / "bin" / "setpriv").symlink_to(setpriv)
        monkeypatch.setenv("PATH", str(Path(folder) / "bin"))  # without unshare
        server = EmbeddedServer(Path(folder) / "home", durable=False, idle_seconds=0.5)
        with server:
            assert psutil.Process(server.status().pid).uids().real != 0
            assert value(server, "SELECT current_user") == "planner"
        monkeypatch.undo()
        with server:  # and stays the owner's where they are allowed again
            assert psutil.Process(server.status().pid).uids().real != 0
        server.stop()
