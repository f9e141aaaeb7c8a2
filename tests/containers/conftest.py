"""A Docker engine, the two images (PG_IMAGE, and the planner's, built here of PYTHON_IMAGE), and their stack.

Without an engine these tests are skipped; where REQUIRE_DOCKER=1 is set, they fail.
"""

from __future__ import annotations

import gc
import os
import secrets
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException

ROOT = Path(__file__).resolve().parents[2]

PUBLIC_PG_IMAGE = "pgvector/pgvector:pg17"


@dataclass(frozen=True)
class Compose:
    """Runs `docker compose` on a project of the test's own, which these variables describe."""

    environment: Mapping[str, str] = field(repr=False)

    def __call__(self, *arguments: str, **further: str) -> str:
        """Run it, with further variables; return what it printed. Fails where it failed."""
        return self.run("docker", "compose", *arguments, **further)

    def run(self, *command: str, **further: str) -> str:
        """Run a command that means this project; return what it printed. Fails where it failed."""
        environment = {**self.environment, **further}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """Give a client of the engine that DOCKER_HOST names, else of the local one."""
    client = connected()
    if isinstance(client, str):
        if os.environ.get("REQUIRE_DOCKER") == "1":
            pytest.fail(f"REQUIRE_DOCKER=1, and no Docker engine answers: {client}", pytrace=False)
        pytest.skip(f"no Docker engine answers: {client}")
    yield client
    client.close()


def connected() -> docker.DockerClient | str:
    """Return a client of an engine that answers, or why there is none.

    The client never closes a socket that it could not connect; what is left of it is collected here, where
    that is no warning, rather than at some later test.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            client = docker.from_env()
            client.ping()
        except DockerException as error:
            reason = str(error)
        else:
            return client
        gc.collect()
    return reason


@pytest.fixture(scope="session")
def pg_image() -> str:
    """Return the image of PostgreSQL with pgvector."""
    return os.environ.get("PG_IMAGE", PUBLIC_PG_IMAGE)


@pytest.fixture(scope="session")
def planner_image(engine: docker.DockerClient) -> Iterator[str]:
    """Give the image of docker/Dockerfile, of this checkout."""
    tag = f"evidence-planner-test:{secrets.token_hex(4)}"
    base = os.environ.get("PYTHON_IMAGE")
    engine.images.build(
        path=str(ROOT),
        dockerfile="docker/Dockerfile",
        tag=tag,
        buildargs={"PYTHON_IMAGE": base} if base else {},
        network_mode="host",  # where the engine sets up no address translation, pip reaches its index so
        rm=True,
        forcerm=True,
    )
    yield tag
    engine.images.remove(tag, force=True)


@pytest.fixture(scope="module")
def compose(engine: docker.DockerClient, pg_image: str, planner_image: str) -> Iterator[Compose]:
    """Give a project of docker/compose.yaml, not up yet, which is gone at the end."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0:
        if os.environ.get("REQUIRE_DOCKER") == "1":
            pytest.fail("REQUIRE_DOCKER=1, and there is no `docker compose`", pytrace=False)
        pytest.skip("there is no `docker compose`")
    project = Compose(
        {
            **os.environ,
            "COMPOSE_FILE": "docker/compose.yaml",
            "COMPOSE_PROJECT_NAME": f"planner-test-{secrets.token_hex(4)}",
            "POSTGRES_PASSWORD": secrets.token_hex(8),
            "APP_PASSWORD": "it's a $ecret",
            "PG_IMAGE": pg_image,
            "EVIDENCE_PLANNER_IMAGE": planner_image,
            "PUBLISH": "127.0.0.1:0",  # a free port
        }
    )
    yield project
    project("down", "--volumes", "--timeout", "10")
