"""The pgvector image with docker/initdb: a login that is no superuser does all, and it stays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import quote

import docker
import psycopg
import pytest
from testcontainers.community.postgres import PostgresContainer

from planner import Planner
from planner.store.doctor import examine
from planner.store.upgrade import migrate
from tests.containers.conftest import ROOT
from tests.golden.plans import expected, hashes

PASSWORD = "it's a $ecret"
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def postgres(engine: docker.DockerClient, pg_image: str) -> Iterator[PostgresContainer]:
    container = PostgresContainer(pg_image, username="postgres", password="admin", dbname="planner")
    container.with_env("APP_PASSWORD", PASSWORD)
    container.with_volume_mapping(str(ROOT / "docker" / "initdb"), "/docker-entrypoint-initdb.d", "ro")
    with container:
        migrate(url_of(container), roles=False)
        yield container


def url_of(container: PostgresContainer) -> str:
    """Return the application's URL; a container that was restarted may have another port."""
    where = f"{container.get_container_host_ip()}:{container.get_exposed_port(5432)}"
    return f"postgresql://planner_app:{quote(PASSWORD, safe='')}@{where}/planner"


def restart(container: PostgresContainer) -> None:
    container.get_wrapped_container().restart()
    for _ in range(PATIENCE_SECONDS):
        if container.exec(["pg_isready", "--host=127.0.0.1"]).exit_code == 0:
            return
        time.sleep(1)
    raise TimeoutError(f"the database is not back {PATIENCE_SECONDS} seconds after a restart")


def test_the_doctor_finds_all_in_order(postgres: PostgresContainer) -> None:
    findings = examine(url_of(postgres))
    assert "row security tried" in {finding.name for finding in findings}
    assert [finding for finding in findings if finding.ok is False] == []
    assert ("login", True) in {(finding.name, finding.ok) for finding in findings}


def test_the_login_that_has_taken_no_role_reads_nothing(postgres: PostgresContainer) -> None:
    with (
        psycopg.connect(url_of(postgres)) as conn,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        conn.execute("SELECT FROM planner.scope")


def test_plans_are_those_on_file_and_replay_after_a_restart(postgres: PostgresContainer) -> None:
    with Planner.connect(url_of(postgres)) as planner:
        assert hashes(planner) == expected()
        plan = planner.plan("golden", "What does a guest berth cost?", budget_tokens=200)
    restart(postgres)
    with Planner.connect(url_of(postgres)) as planner:
        assert planner.load(plan.ref).plan_hash == plan.plan_hash
        assert planner.replay(plan.ref).plan_hash == plan.plan_hash
        again = planner.plan("golden", "What does a guest berth cost?", budget_tokens=200)
        assert again.plan_hash == plan.plan_hash
