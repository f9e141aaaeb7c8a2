"""The process itself: closed streams, pipes, narrow and colourless terminals, and what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.running import SCOPE

Process = Callable[..., subprocess.CompletedProcess[str]]

RUN = "import sys; from planner.surfaces.cli import main; sys.exit(main())"
QUESTION = "When does the storm gate close?"
HEAVY = {"alembic", "numpy", "psycopg", "sqlalchemy", "tokenizers", "wordllama"}


@pytest.fixture
def shell(corpus_url: str, tmp_path: Path) -> Process:
    """Run a shell line in which `planner` is the command line, on the database of the corpus."""

    def run(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
        python = f"{sys.executable} -c '{RUN}'"
        environment = {**os.environ, "PLANNER_DATABASE_URL": corpus_url, **variables}
        return subprocess.run(
            ["bash", "-c", f'planner() {{ {python} "$@"; }}; {line}'],
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            env=environment,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )

    return run


def test_a_reader_that_goes_away_ends_the_command_quietly(shell: Process) -> None:
    ran = shell(f"planner plan {SCOPE} '{QUESTION}' --json | true")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_closed_streams_are_empty_ones(shell: Process) -> None:
    ran = shell(f"planner plan {SCOPE} '{QUESTION}' >&-; echo $?; planner ingest x - <&-; echo $?")
    assert ran.stdout.splitlines() == ["0", "0 sources in x, 1 failed; wrote nothing", "3"]
    assert "Traceback" not in ran.stderr


def test_a_full_disk_is_a_problem_not_a_traceback(shell: Process) -> None:
    ran = shell(f"planner source list {SCOPE} > /dev/full")
    assert (ran.returncode, "Traceback" in ran.stderr) == (1, False)
    assert "No space left" in ran.stderr


def test_forty_columns_hold_every_line_of_a_table_and_lose_nothing(shell: Process) -> None:
    ran = shell(f"planner source list {SCOPE}", COLUMNS="40", NO_COLOR="1")
    assert ran.returncode == 0
    assert max(len(line) for line in ran.stdout.splitlines()) <= 40
    first_column = "".join(line[1:].split(" ")[0] for line in ran.stdout.splitlines())
    assert "meetings/2024-03-12.md" in first_column.replace("source", "")


def test_a_pipe_gets_one_line_a_row_and_no_escape_sequences(shell: Process) -> None:
    ran = shell(
        f"unset COLUMNS; planner source list {SCOPE} | grep -c '^ [^ ]*/[^ ]*\\.[a-z]* '",
        TERM="xterm-256color",
    )
    assert ran.stdout == "5\n"
    assert "\x1b" not in shell(f"planner plan {SCOPE} '{QUESTION}'").stdout


def test_a_terminal_without_the_signs_shows_their_numbers(shell: Process) -> None:
    ran = shell(f"planner plan {SCOPE} '{QUESTION}'", PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert r"\u2588" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [("--help", set()), ("--version", set()), ("config", set()), ("pack --help", {"numpy", "tokenizers"})],
)
def test_light_commands_import_nothing_heavy(arguments: str, allowed: set[str]) -> None:
    code = (
        f"import sys; from planner.surfaces.cli import main; main({arguments.split()!r}); print(*sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert HEAVY & set(out.splitlines()[-1].split()) <= allowed
