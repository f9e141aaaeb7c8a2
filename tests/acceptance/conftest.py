"""The command line as people and programs run it, on one database that holds the shipped corpus."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from planner import Planner
from planner.demo import corpus_folder
from planner.surfaces.cli import main
from tests.acceptance.running import SCOPE, Cli, Ran


@pytest.fixture(scope="session")
def corpus_url(shared_database_url: str) -> str:
    """Give a database whose scope `cli` holds the shipped corpus; plans may be added, sources may not."""
    with Planner.connect(shared_database_url) as planner:
        assert not planner.ingest(SCOPE, corpus_folder(), trust="internal").failures
    return shared_database_url


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Run a command in an empty folder. Without `--database-url` it would start the embedded server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str | Path, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ran(code, out, err)

    return run


@pytest.fixture
def corpus(cli: Cli, corpus_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command on the database of the corpus, which the environment names."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", corpus_url)
    return cli


@pytest.fixture(scope="session")
def planned(corpus_url: str) -> str:
    """Give the reference of a plan that left much out."""
    with Planner.connect(corpus_url) as planner:
        return str(planner.plan(SCOPE, "When does the storm gate close?", budget_tokens=200).ref)
