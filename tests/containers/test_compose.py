"""docker/compose.yaml from nothing to a plan, down, and up again with everything still there."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import docker
import pytest

from tests.containers.conftest import ROOT

Compose = Callable[..., str]

QUESTION = "At what forecast level does the storm gate close?"


@pytest.fixture(scope="module")
def compose(engine: docker.DockerClient, pg_image: str, planner_image: str) -> Iterator[Compose]:
    """Give a function that runs `docker compose` on a project of the test's own, which is gone at the end."""
    project = f"planner-test-{secrets.token_hex(4)}"
    environment = {
        **os.environ,
        "POSTGRES_PASSWORD": secrets.token_hex(8),
        "APP_PASSWORD": "it's a $ecret",
        "PG_IMAGE": pg_image,
        "EVIDENCE_PLANNER_IMAGE": planner_image,
    }

    def run(*arguments: str) -> str:
        command = ["docker", "compose", "-p", project, "-f", "docker/compose.yaml", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0:
        if os.environ.get("REQUIRE_DOCKER") == "1":
            pytest.fail("REQUIRE_DOCKER=1, and there is no `docker compose`", pytrace=False)
        pytest.skip("there is no `docker compose`")
    yield run
    run("down", "--volumes", "--timeout", "10")


def in_shell(compose: Compose, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(compose("exec", "-T", "shell", "planner", *arguments, "--json"))
    return answer


def test_what_was_ingested_and_planned_is_there_after_the_stack_was_down(compose: Compose) -> None:
    compose("up", "--detach", "--wait", "--no-build", "shell")
    assert in_shell(compose, "ingest", "demo", "/documents")["failures"] == []
    plan = in_shell(compose, "plan", "demo", QUESTION, "--budget", "300")
    assert plan["spans"]
    compose("down", "--timeout", "30")
    compose("up", "--detach", "--wait", "--no-build", "shell")
    again = in_shell(compose, "replay", plan["plan"])
    assert again["plan_hash"] == plan["plan_hash"]


@pytest.mark.parametrize("service", ["database", "migrate", "shell"])
def test_every_service_is_read_only_and_gains_no_privilege(compose: Compose, service: str) -> None:
    described = json.loads(compose("config", "--format", "json"))["services"][service]
    assert described["read_only"] is True
    assert described["cap_drop"] == ["ALL"]
    assert described["security_opt"] == ["no-new-privileges:true"]
    assert "ports" not in described
