"""docker/compose.yaml from nothing to a plan, down, and up again with everything still there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.containers.conftest import Compose

QUESTION = "At what forecast level does the storm gate close?"


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


@pytest.mark.parametrize("service", ["database", "migrate", "planner", "shell"])
def test_every_service_is_read_only_and_gains_no_privilege(compose: Compose, service: str) -> None:
    described = services(compose)[service]
    assert described["read_only"] is True
    assert described["cap_drop"] == ["ALL"]
    assert described["security_opt"] == ["no-new-privileges:true"]


def test_the_service_is_published_on_this_machine_alone_and_nothing_else_is(compose: Compose) -> None:
    published = {name: described.get("ports", []) for name, described in services(compose).items()}
    (port,) = published.pop("planner")
    assert (port["host_ip"], port["published"], port["target"]) == ("127.0.0.1", "8000", 8000)
    assert published == {"database": [], "migrate": [], "shell": []}


def services(compose: Compose) -> dict[str, Any]:
    """Return the services as the file describes them where PUBLISH says nothing."""
    described: dict[str, Any] = json.loads(compose("config", "--format", "json", PUBLISH=""))["services"]
    return described
