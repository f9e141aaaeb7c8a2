"""docs/delivery.md: its commands and snippets run, in their order, and print what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner import Planner
from planner.demo import corpus_folder
from tests.acceptance.running import Cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "delivery.md").read_text(encoding="utf-8")


def blocks() -> Iterator[tuple[str, str]]:
    """Yield the fenced blocks, each with its language."""
    for found in re.finditer(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        yield found[1], found[2]


def shown(text: str) -> str:
    """Leave out the blanks at the ends of lines, which an editor may not keep."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def test_what_the_page_runs_prints_what_it_shows(
    cli: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Planner.connect(database_url) as planner:
        planner.ingest("handbook", corpus_folder())
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    monkeypatch.delenv("COLUMNS")
    monkeypatch.chdir(ROOT)
    printed: list[str] = []
    languages = []
    for language, block in blocks():
        languages.append(language)
        if language == "console":
            for step in block.split("$ ")[1:]:
                line, _, expected = step.partition("\n")
                program, *arguments = shlex.split(line)
                assert program == "planner"
                ran = cli(*arguments)
                assert shown(expected) == shown(ran.out + ran.err)
        elif language == "python":
            ran_ = subprocess.run(
                [sys.executable, "-c", block], capture_output=True, encoding="utf-8", check=True
            )
            printed.append(shown(ran_.stdout))
        else:
            assert (language, shown(block)) == ("text", printed.pop())
    assert (languages.count("console"), languages.count("python"), printed) == (2, 2, [])
