"""docs/mcp.md: its configurations connect, its snippet prints what it says, its table is of the tools."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from planner import Planner
from planner.demo import corpus_folder
from planner.surfaces.mcp.tools import TOOLS
from tests.acceptance.running import Cli
from tests.mcp_service import asking, over_http, served

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def handbook(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planner]:
    """Give a planner on the database that the environment names, which holds what the page speaks of."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    with Planner.connect(database_url) as planner:
        planner.ingest("handbook", corpus_folder())
        yield planner


def test_the_snippet_prints_what_the_page_shows(handbook: Planner) -> None:
    (snippet,), (shown,) = blocks("python"), blocks("text")
    ran = subprocess.run([sys.executable, "-c", snippet], capture_output=True, encoding="utf-8", check=True)
    assert ran.stdout == shown


def test_the_configurations_connect(handbook: Planner, database_url: str) -> None:
    local, remote = (json.loads(block)["mcpServers"]["evidence"] for block in blocks("json"))

    async def names(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    started = StdioServerParameters(**local, env={"PLANNER_DATABASE_URL": database_url})
    assert asking(partial(Client, started), names) == [name for name in TOOLS if name != "remember"]
    token = handbook.create_token("handbook", label="the assistant", permissions=["read"]).text
    with served(handbook, tokens=True) as base:
        assert remote["url"].endswith("/mcp")
        header = remote["headers"]["Authorization"].replace("handbook.…", token)
        assert "remember" not in asking(partial(over_http, base, header.removeprefix("Bearer ")), names)


def test_the_table_has_every_tool_its_permission_and_what_it_takes() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", PAGE, re.MULTILINE)
    assert {name: permission for name, permission, _ in rows} == {
        name: tool.permission for name, tool in TOOLS.items()
    }
    for name, _, takes in rows:
        properties = TOOLS[name].description.input_schema["properties"].keys()
        assert set(re.findall(r"`(\w+)`", takes)) == properties - {"scope"}


def test_the_command_refuses_what_contradicts_itself(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("mcp", "--scope", "not a scope").code == 2
    monkeypatch.setenv("PLANNER_TOKEN", "notes.x")
    ran = cli("mcp", "--scope", "notes")
    assert (ran.code, ran.out) == (2, "")
    assert "leave out --scope" in ran.err
