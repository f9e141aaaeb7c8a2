"""`planner view`: the address of a plan, of a service that runs or of one that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import webbrowser

import httpx
import pytest

from tests.acceptance.running import Cli


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the addresses that a browser is sent to; there is none."""
    addresses: list[str] = []

    def open_nothing(address: str) -> bool:
        addresses.append(address)
        return False

    monkeypatch.setattr(webbrowser, "open", open_nothing)
    return addresses


def test_the_address_in_a_service_that_runs(corpus: Cli, planned: str, opened: list[str]) -> None:
    scope, plan_id = planned.split(":")
    ran = corpus("view", planned, "--url", "http://evidence.example:8000/")
    address = f"http://evidence.example:8000/ui/scopes/{scope}/plans/{plan_id}"
    assert (ran.code, ran.out) == (0, f"{address}\n")
    assert opened == [address]
    assert "no browser was found" in ran.err
    assert corpus("view", planned, "--url", "http://h", "--no-browser").err == ""
    told = corpus("view", planned, "--url", "http://h", "--no-browser", "--json").json
    assert told == {"url": f"http://h/ui/scopes/{scope}/plans/{plan_id}"}
    assert opened == [address]


@pytest.mark.parametrize(
    ("plan", "code", "said"),
    [("nonsense", 2, "is not a plan reference"), ("cli:00000000-0000-7000-8000-000000000000", 1, "no plan")],
)
def test_what_is_no_plan_is_said_here(
    corpus: Cli, opened: list[str], plan: str, code: int, said: str
) -> None:
    ran = corpus("view", plan)
    assert ran.code == code
    assert said in ran.err
    assert opened == []


def test_it_serves_the_plan_until_it_is_told_to_stop(corpus_url: str, planned: str) -> None:
    code = "import sys; from planner.surfaces.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "view", planned, "--no-browser", "--database-url", corpus_url]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLANNER_")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as run:
        assert run.stdout is not None
        address = run.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        page = httpx.get(address, timeout=60)
        assert page.status_code == 200
        assert "When does the storm gate close?" in page.text
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=60)
        assert run.returncode == 0, err
