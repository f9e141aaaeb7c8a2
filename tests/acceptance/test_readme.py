"""The README: its commands and snippets run, and print what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.embedded import EmbeddedServer
from planner.surfaces.cli.app import COMMANDS
from tests.acceptance.running import Cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PLAN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def without_ends(text: str) -> str:
    """Leave out the blanks at the ends of lines, which an editor may not keep."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("readme") / "data"
    yield folder
    EmbeddedServer(folder).stop()


@pytest.fixture
def fresh(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command in the checkout, as somebody who has just set it up."""
    monkeypatch.setenv("PLANNER_DATA_DIR", str(home))
    monkeypatch.delenv("COLUMNS")
    monkeypatch.chdir(ROOT)
    return cli


def test_each_setup_is_one_line_of_shell_that_ends_in_a_command_of_ours(fresh: Cli) -> None:
    demo, tests = (block.strip() for block in blocks("sh"))
    for line, installed in ((demo, "'.[embedded]'"), (tests, "-e '.[test]'")):
        assert "\n" not in line
        subprocess.run(["sh", "-n", "-c", line], check=True)
        assert f"&& .venv/bin/pip install -c constraints.txt {installed} && " in line
    ours = demo.rpartition(" && .venv/bin/planner ")[2]
    assert fresh(*shlex.split(ours)).code == 0
    assert tests.endswith(" && .venv/bin/pytest")


def test_ci_installs_as_the_readme_does() -> None:
    installed = re.search(r"pip install (-c constraints.txt -e '.*?')", blocks("sh")[1])
    assert installed is not None
    assert installed[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_commands_print_what_the_readme_shows(fresh: Cli) -> None:
    (session,) = blocks("console")
    assert fresh("demo").code == 0
    plans: dict[str, str] = {}
    for step in session.split("$ ")[1:]:
        line, _, shown = step.partition("\n")
        program, *arguments = shlex.split(PLAN.sub(lambda found: plans[found[0]], line))
        assert program == "planner"
        ran = fresh(*arguments)
        assert (ran.code, ran.err) == (0, "")
        plans.update(zip(PLAN.findall(shown), PLAN.findall(ran.out), strict=True))
        assert without_ends(PLAN.sub(lambda found: plans[found[0]], shown)) == without_ends(ran.out)
    assert len(set(plans.values())) == 1


def test_the_library_example_is_five_lines_and_prints_what_the_readme_shows(fresh: Cli, home: Path) -> None:
    (example,), (shown,) = blocks("python"), blocks("text")
    assert len([line for line in example.splitlines() if line]) == 5
    ran = subprocess.run([sys.executable, "-c", example], capture_output=True, encoding="utf-8", check=True)
    assert (without_ends(ran.stdout), ran.stderr) == (without_ends(shown), "")


def test_the_table_lists_every_command_and_no_other() -> None:
    listed = re.findall(r"^\| `planner ([a-z]+)", README, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


def test_links_lead_somewhere_within_the_checkout() -> None:
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)]+)\)", prose)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
