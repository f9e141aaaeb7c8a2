"""docs/http.md: its commands run, and answer what it shows; the examples of /openapi.json are true."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from planner import Planner
from planner.settings import Settings
from planner.surfaces.http.limits import Limits
from tests.acceptance.running import Cli
from tests.http_service import client, routes_of
from tests.http_story import FILE, STORY, record
from tests.served import Served, served

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
PLAN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def serving(line: str) -> tuple[str, list[str]]:
    """Return the address that a command of the docs serves on, and its arguments but for that."""
    program, command, *arguments = shlex.split(line)
    assert (program, command) == ("planner", "serve")
    at = arguments.index("--port")
    return f"localhost:{arguments[at + 1]}", arguments[:at] + arguments[at + 2 :]


def curl(line: str, services: dict[str, Served]) -> Any:
    """Send what a command of curl's would send."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true", required=True)
    parser.add_argument("-G", action="store_true")
    parser.add_argument("-d", default="")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("--json")
    program, *arguments = shlex.split(line)
    assert program == "curl"
    asked = parser.parse_args(arguments)
    host, slash, path = asked.url.partition("/")
    url = services[host].url + slash + path + (f"?{asked.d}" if asked.G else "")
    headers = dict(header.split(": ", 1) for header in asked.H)
    if asked.json is None:
        return httpx.get(url, headers=headers).json()
    headers["Content-Type"] = "application/json"
    return httpx.post(url, content=asked.json, headers=headers, timeout=60).json()


def test_the_commands_answer_what_is_shown(
    cli: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    services: dict[str, Served] = {}
    plans: dict[str, str] = {}
    with ExitStack() as running:
        for language, block in BLOCKS:
            for line in block.splitlines() if language == "sh" else ():
                if line.startswith("planner serve"):
                    address, arguments = serving(line)
                    services[address] = running.enter_context(served(*arguments))
                else:
                    assert cli(*shlex.split(line)[1:]).code == 0
            for step in block.split("$ ")[1:] if language == "console" else ():
                line, _, shown = step.partition("\n")
                asked = PLAN.sub(lambda found: plans[found[0]], line)
                answer, said = curl(asked, services), json.loads(shown)
                if "plan" in said:
                    plans[said["plan"].rpartition(":")[2]] = answer["plan"].rpartition(":")[2]
                    said["plan"] = answer["plan"]
                assert {name: answer.get(name) for name in said} == said, line
    assert len(plans) == 1


def test_the_table_has_every_route_and_its_permission(database_url: str) -> None:
    listed = re.findall(r"^\| `([A-Z]+) (\S+)` \|", DOCS, re.MULTILINE)
    with Planner.connect(database_url) as planner, client(planner) as http:
        assert sorted(listed) == sorted(routes_of(http.app))


def test_the_limits_are_the_settings_defaults() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", DOCS, re.MULTILINE))
    limits = Limits.of(Settings())
    assert {name: int(value) for name, value in rows.items()} == {
        "deadline_ms": limits.deadline_ms,
        "max_body_bytes": limits.max_body_bytes,
        "max_page": limits.max_page,
    }
    assert "`pool_size`, `pool_wait_ms` | 8, 2000 |" in DOCS
    assert (Settings().pool_size, Settings().pool_wait_ms, Settings().cors_origins) == (8, 2_000, ())


def test_the_metrics_are_those_that_are_counted(database_url: str) -> None:
    with Planner.connect(database_url) as planner, client(planner) as http:
        counted = set(re.findall(r"^# TYPE (\w+)", http.get("/metrics").text, re.MULTILINE))
    named = set(re.findall(r"`(planner_\w+)(?:\{[^}]*\})?`", DOCS))
    assert named == {name for name in counted if not name.endswith("_created")}


def test_the_examples_are_what_is_answered(database_url: str) -> None:
    """Where they are not any more: `python -m tests.http_story` writes them anew."""
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    assert [name for name, *_ in STORY] == list(recorded)
    assert record(database_url) == recorded
