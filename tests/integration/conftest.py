"""Embedded servers of a test's own, made without waiting for initdb each time; one planner for graphs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from planner import Planner, Settings
from planner.embedded import EmbeddedServer
from tests.integration.graph import V1, Connection, circle_embedder, fan, fresh_scope

# Says the server's pid when it is a client, and stays one until its stdin ends.
_CLIENT = """
import sys
from pathlib import Path
from planner.embedded import EmbeddedServer
with EmbeddedServer(Path(sys.argv[1]), durable=False, idle_seconds=float(sys.argv[2])) as server:
    print(server.status().pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="session")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the data folder of a stopped server, to copy."""
    home = tmp_path_factory.mktemp("embedded") / "home"
    server = EmbeddedServer(home, durable=False)
    server.start()
    server.stop()
    return home


@pytest.fixture
def home(initialised: Path, tmp_path: Path) -> Iterator[Path]:
    """Give a data folder of our own, in which no server runs, nor will one at the end."""
    path = tmp_path / "home"
    shutil.copytree(initialised, path)
    yield path
    EmbeddedServer(path).stop()


@pytest.fixture
def client(home: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Give a function that starts another process as a client of the server in `home`."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _CLIENT, str(home), "0.5"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def server_processes(home: Path) -> Callable[[], list[psutil.Process]]:
    """Give a function that lists the processes, of the server and its supervisor, that work in `home`."""

    def working() -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                if home in (cwd := Path(process.cwd()), *cwd.parents):
                    yield process
            except psutil.Error:
                continue

    return lambda: list(working())


@pytest.fixture(scope="session")
def planner(shared_database_url: str) -> Iterator[Planner]:
    """Give a planner whose embedder is the unit circle and in which one source may fill a plan."""
    whole = Settings(**V1, max_frac_per_source=1.0)
    with Planner.connect(shared_database_url, settings=whole, embedder=circle_embedder()) as opened:
        yield opened


@pytest.fixture(scope="session")
def conn(shared_database_url: str) -> Iterator[Connection]:
    """Give a superuser's connection to the same database, to see and to damage what is there.

    It prepares nothing, since behind a pooler the next statement may meet another session.
    """
    with psycopg.connect(shared_database_url, autocommit=True, prepare_threshold=None) as connection:
        yield connection


@pytest.fixture
def scope() -> str:
    """Give a scope of the test's own in the shared database."""
    return fresh_scope()


@pytest.fixture
def victim(database_url: str) -> Iterator[Planner]:
    """Give a planner on a database of its own, whose scope `s` holds a small graph."""
    with Planner.connect(database_url, settings=Settings(**V1), embedder=circle_embedder()) as planner:
        fan(0, 30).into(planner, "s")
        yield planner


@pytest.fixture
def other(database_url: str) -> Iterator[Connection]:
    """Give another session of the same database, a superuser's."""
    with psycopg.connect(database_url, autocommit=True, prepare_threshold=None) as conn:
        yield conn


@pytest.fixture
def observer(server_url: str, other: Connection) -> Iterator[Connection]:
    """Give a session to look on from, which passes by a pooler: it is no client of it to the others."""
    with psycopg.connect(server_url, dbname=other.info.dbname, autocommit=True) as conn:
        yield conn
