"""The service of docker/compose.yaml: it asks for tokens, keeps what it was told, and stops when told to."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

import docker
import httpx
import pytest
from docker.models.containers import Container

from tests.containers.conftest import ROOT, Compose

SCOPE = "notes"

BERTH = "A guest berth on the north pier costs 31 crowns a night."

QUESTION = {"scope": SCOPE, "text": "What does a guest berth on the north pier cost?", "budget_tokens": 400}

PATIENCE_SECONDS = 60

SIGKILLED = 137


@pytest.fixture(scope="module")
def service(compose: Compose) -> Compose:
    """Give the project with its service up and ready, on a database that was migrated."""
    return up(compose)


@pytest.fixture(scope="module")
def token(service: Compose) -> str:
    """Return a token of a scope, which came to be by an ingest."""
    service("run", "--rm", "shell", "planner", "ingest", SCOPE, "/documents")
    permissions = ("--permission", "read", "--permission", "write", "--permission", "inspect")
    made = service(
        "run", "--rm", "shell", "planner", "token", "create", SCOPE, "--label", "test", *permissions
    )
    return made.strip()


def up(compose: Compose) -> Compose:
    compose("up", "--detach", "--wait", "--no-build", "planner")
    return compose


def container(compose: Compose, engine: docker.DockerClient) -> Container:
    """Return the service's container, whether or not it runs."""
    return engine.containers.get(compose("ps", "--all", "--quiet", "planner").strip())


def client(compose: Compose, token: str | None = None) -> httpx.Client:
    """Give a client of the service where it is published now: a restart moves a port that nobody chose."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = f"http://{compose('port', 'planner', '8000').strip()}"
    return httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)


def asked(client: httpx.Client, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    answer = client.request(method, path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_plan_made_over_http_is_there_after_service_and_database_were_restarted(
    service: Compose, token: str
) -> None:
    with client(service, token) as http:
        source = {"id": "north-pier.md", "text": BERTH}
        (kept,) = asked(http, "POST", f"/v1/scopes/{SCOPE}/sources", source)["sources"]
        assert kept["status"] == "new"
        plan = asked(http, "POST", "/v1/plans", QUESTION)
        assert source["id"] in {span["ref"].partition("@")[0] for span in plan["spans"]}
    service("restart", "database", "planner")
    with client(up(service), token) as http:
        again = asked(http, "GET", f"/v1/plans/{plan['plan']}")
        assert (again["plan_hash"], again["spans"]) == (plan["plan_hash"], plan["spans"])
        assert asked(http, "POST", f"/v1/plans/{plan['plan']}/replay")["plan_hash"] == plan["plan_hash"]
        assert asked(http, "POST", "/v1/plans", QUESTION)["plan_hash"] == plan["plan_hash"]
        (same,) = asked(http, "POST", f"/v1/scopes/{SCOPE}/sources", source)["sources"]
        assert same["status"] == "unchanged"


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/plans"), ("GET", f"/v1/scopes/{SCOPE}/sources"), ("POST", "/mcp")]
)
def test_nothing_is_said_without_a_token(service: Compose, token: str, method: str, path: str) -> None:
    bodies = set()
    for wrong in (None, f"{SCOPE}.{'x' * 43}"):
        with client(service, wrong) as http:
            answer = http.request(method, path, json=QUESTION if method == "POST" else None)
        assert answer.status_code == 401
        assert answer.json()["code"] == "auth.unauthorized"
        bodies.add(answer.text)
    assert not any(BERTH in body or token in body for body in bodies)


def test_health_and_metrics_answer_without_a_token(service: Compose) -> None:
    with client(service) as http:
        assert asked(http, "GET", "/livez") == {"status": "alive"}
        assert asked(http, "GET", "/readyz")["ready"] is True
        assert "\nplanner_pool_connections{" in http.get("/metrics").text
        assert http.get("/ui/login").status_code == 200


def test_one_process_runs_that_is_not_root_and_writes_nowhere(
    service: Compose, engine: docker.DockerClient
) -> None:
    running = container(service, engine)
    (_, _, init), (_, uid, serving) = running.top(ps_args="-eo pid,uid,args")["Processes"]
    assert init.startswith("/sbin/docker-init -- ")
    assert (uid, "planner serve" in serving) == ("10001", True)
    assert running.attrs["HostConfig"]["ReadonlyRootfs"] is True
    code, said = running.exec_run(["touch", "/opt/planner/x"])
    assert (code, b"Read-only file system" in said) == (1, True)


def test_its_health_check_fails_while_the_database_is_gone_and_passes_when_it_is_back(
    service: Compose, engine: docker.DockerClient
) -> None:
    running = container(service, engine)
    kind, *check = running.attrs["Config"]["Healthcheck"]["Test"]
    assert kind == "CMD"
    service("stop", "database")
    assert running.exec_run(check).exit_code == 1
    service("start", "database")
    for _ in range(PATIENCE_SECONDS):
        if running.exec_run(check).exit_code == 0:
            break
        time.sleep(1)
    else:
        pytest.fail(f"not ready {PATIENCE_SECONDS} seconds after the database is back")
    running.reload()
    assert running.attrs["RestartCount"] == 0


def test_it_stops_when_told_to_also_while_it_starts(service: Compose, engine: docker.DockerClient) -> None:
    service("stop", "planner")
    stopped = container(service, engine)
    assert stopped.attrs["State"]["ExitCode"] == 0
    assert json.loads(stopped.logs(tail=1))["event"] == "stopped"
    stopped.start()
    stopped.stop(timeout=PATIENCE_SECONDS)
    stopped.reload()
    assert stopped.attrs["State"]["ExitCode"] != SIGKILLED
    up(service)


def test_the_commands_of_the_docs_run_as_they_stand(service: Compose) -> None:
    docs = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = docs.partition("\n## Containers\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    exports, _, script = block.partition("\n")
    assert exports.startswith("export ")  # the fixture's environment stands for them
    script = script.replace(" --build ", " --no-build ")
    script = script.replace("127.0.0.1:8000", '"$(docker compose port planner 8000)"')
    said = service.run("bash", "-euo", "pipefail", "-c", script)
    assert "guest berth" in json.loads(said.splitlines()[-1])["text"]
