"""A Docker engine, and the two images: PG_IMAGE, and the planner's, built here of PYTHON_IMAGE.

Without an engine these tests are skipped; where REQUIRE_DOCKER=1 is set, they fail.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException

ROOT = Path(__file__).resolve().parents[2]

PUBLIC_PG_IMAGE = "pgvector/pgvector:pg17"


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """Give a client of the engine that DOCKER_HOST names, else of the local one."""
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        if os.environ.get("REQUIRE_DOCKER") == "1":
            pytest.fail(f"REQUIRE_DOCKER=1, and no Docker engine answers: {error}", pytrace=False)
        pytest.skip(f"no Docker engine answers: {error}")
    yield client
    client.close()


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
