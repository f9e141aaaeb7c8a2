"""The planner's image: no root, no file written, no network needed, and a check that can fail."""

from __future__ import annotations

from typing import Any

import docker
import pytest
from docker.errors import ContainerError

LOCKED_UP: dict[str, Any] = {
    "read_only": True,
    "network_mode": "none",
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "tmpfs": {"/tmp": ""},
    "remove": True,
    "stderr": True,
}

DEMO_IN_MEMORY = """
from planner.demo import corpus_folder
from planner.embedders import embedder
from planner.ingest import parse
path = corpus_folder() / "storm-gate.md"
batch = parse(path.read_bytes(), source_id=path.name)
print(embedder("wordllama").embed(["storm gate"]).shape)
"""


def test_it_runs_as_a_user_that_is_not_root(engine: docker.DockerClient, planner_image: str) -> None:
    said = engine.containers.run(planner_image, ["-u"], entrypoint="id", **LOCKED_UP)
    assert int(said) != 0


def test_its_command_runs_on_a_read_only_file_system_without_a_network(
    engine: docker.DockerClient, planner_image: str
) -> None:
    assert engine.containers.run(planner_image, ["--version"], **LOCKED_UP).startswith(b"planner ")


def test_it_parses_and_embeds_with_what_it_brought_along(
    engine: docker.DockerClient, planner_image: str
) -> None:
    said = engine.containers.run(planner_image, ["-c", DEMO_IN_MEMORY], entrypoint="python3", **LOCKED_UP)
    assert said == b"(1, 256)\n"


def test_its_health_check_fails_where_no_database_answers(
    engine: docker.DockerClient, planner_image: str
) -> None:
    kind, *command = engine.images.get(planner_image).attrs["Config"]["Healthcheck"]["Test"]
    assert kind == "CMD"
    with pytest.raises(ContainerError, match="cannot be reached"):
        engine.containers.run(
            planner_image,
            command[1:],
            entrypoint=command[0],
            environment={"PLANNER_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"},
            **LOCKED_UP,
        )
