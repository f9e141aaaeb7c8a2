"""The table of faults, printed at the end of a session, and the processes that work at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import psycopg
import pytest

from planner.embedded import EmbeddedServer
from planner.store.upgrade import migrate
from tests.faults.crew import Crew
from tests.faults.table import FaultTable

TABLE = pytest.StashKey[FaultTable]()

Survived = Callable[[str, str, int], None]


@pytest.fixture(scope="session")
def faults(request: pytest.FixtureRequest) -> FaultTable:
    """Give the table of faults."""
    return request.config.stash.setdefault(TABLE, FaultTable())


@pytest.fixture(scope="session")
def survived(faults: FaultTable) -> Survived:
    """Give `survived(fault, stage, rows_lost)`, by which a test reports once it has counted."""
    return faults.survived


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    """Give ten processes."""
    crew = Crew()
    yield crew
    crew.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
    report: pytest.TestReport = yield
    if report.failed:
        item.config.stash.setdefault(TABLE, FaultTable()).failed(item.name)
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    table = config.stash.get(TABLE, FaultTable())
    if table.rows:
        terminalreporter.section("faults")
        for line in table.lines():
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def crashable_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """Give a server whose processes may be killed, with its migrated database.

    What a killed server has written the kernel keeps, so it needs no fsync; but it must have been written.
    """
    server = EmbeddedServer(tmp_path_factory.mktemp("crashable"), durable=False, idle_seconds=5)
    with server:
        migrate(server.url)
        with psycopg.connect(server.url, autocommit=True) as conn:
            conn.execute("ALTER ROLE CURRENT_USER SET synchronous_commit = on")
        yield server
    server.stop()


@pytest.fixture
def crashable(crashable_server: EmbeddedServer) -> Iterator[EmbeddedServer]:
    """Give that server, started again where the test before has left it dead."""
    with crashable_server as server:
        yield server
