"""A migration that dies at any of its statements: what it committed is whole, and the next one ends it."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache, partial

import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from planner import Planner, Settings
from planner.embedded import EmbeddedServer
from planner.errors import SchemaBehind
from planner.store.doctor import examine
from planner.store.upgrade import check, migrate
from tests.faults.conftest import Survived
from tests.faults.crew import lost
from tests.faults.dying import KILLS
from tests.faults.invariants import check_invariants
from tests.faults.killing import (
    MIGRATE,
    Answer,
    Client,
    calling,
    judged,
    opened,
    session,
    standing,
    until_gone,
)
from tests.faults.operations import Rows, base, rows
from tests.faults.rehearsal import staged
from tests.faults.stages import COMMIT, Watch
from tests.integration.graph import Connection

DEFINITIONS = """
    WITH r AS (SELECT c.* FROM pg_class c WHERE c.relnamespace = to_regnamespace('planner'))
    SELECT 'relation', concat_ws(' ', relname, relkind, relacl, relrowsecurity, relforcerowsecurity) FROM r
    UNION ALL
    SELECT 'column', concat_ws(' ', r.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                               a.attstorage, a.attcollation::regcollation)
      FROM r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0
    UNION ALL
    SELECT 'constraint', concat_ws(' ', r.relname, k.conname, pg_get_constraintdef(k.oid))
      FROM r JOIN pg_constraint k ON k.conrelid = r.oid
    UNION ALL
    SELECT 'index', concat_ws(' ', pg_get_indexdef(i.indexrelid), i.indisvalid)
      FROM r JOIN pg_index i ON i.indrelid = r.oid
    UNION ALL
    SELECT 'view', concat_ws(' ', relname, pg_get_viewdef(oid)) FROM r WHERE relkind = 'v'
    UNION ALL
    SELECT 'policy', concat_ws(' ', tablename, policyname, roles, cmd, qual, with_check)
      FROM pg_policies WHERE schemaname = 'planner'
    UNION ALL
    SELECT 'function', concat_ws(' ', p.oid::regprocedure, p.prosrc, p.proacl)
      FROM pg_proc p WHERE p.pronamespace = to_regnamespace('planner')
    UNION ALL
    SELECT 'schema', concat_ws(' ', n.nspacl, obj_description(n.oid))
      FROM pg_namespace n WHERE n.nspname = 'planner'
    UNION ALL
    SELECT 'extension', extversion FROM pg_extension WHERE extname = 'vector'"""


def definitions(conn: Connection) -> Rows:
    """Return what the schema is made of, as rows to count."""
    return Counter(conn.execute(DEFINITIONS).fetchall())


@contextmanager
def database(server: EmbeddedServer) -> Iterator[str]:
    """Give the URL of an empty database of the server."""
    name = f"faults_{secrets.token_hex(6)}"
    with session(server.url) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    yield make_url(server.url).set(database=name).render_as_string(hide_password=False)
    with session(server.url) as conn:
        conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@cache
def rehearsed(server: EmbeddedServer) -> tuple[dict[str, Rows], Rows]:
    """Return what is committed at each stage of migrating an empty database, and at the end."""
    watch = Watch()
    with database(server) as url, session(url) as conn, calling(url, MIGRATE, watch) as call:
        return staged(watch, partial(call, ""), lambda: definitions(conn)), definitions(conn)


def places(at: dict[str, Rows], count: int) -> list[str]:
    """Return about `count` stages from first to last, and both sides of each commit."""
    step = max(1, len(at) // count)
    return [stage for i, stage in enumerate(at) if i % step == 0 or stage.startswith(COMMIT)]


def killed_at(url: str, stage: str) -> None:
    """Start a migration, kill its process at a stage, and wait for the end of its backend."""
    client = Client(url, MIGRATE, "", stage)
    backend = client.stopped()
    client.kill()
    with session(url) as conn:
        until_gone(conn, [backend])


def test_a_killed_migration_leaves_whole_steps_and_the_next_one_goes_on_from_there(
    crashable: EmbeddedServer, survived: Survived
) -> None:
    at, done = rehearsed(crashable)

    def missing(stages: list[str]) -> list[int]:
        """Kill at these stages, one after another on one database as long as it has no tables."""
        found = []
        while stages:
            with database(crashable) as url, session(url) as conn:
                while stages and check(url).current is None:
                    stage = stages.pop(0)
                    killed_at(url, stage)
                    there = definitions(conn)
                    found.append(lost(at[stage], there))
                    if there != done:
                        with pytest.raises(SchemaBehind, match="planner migrate"):
                            Planner.connect(url, settings=Settings())
                migrate(url)
                assert lost(done, definitions(conn)) == 0
        return found

    stages = places(at, 32)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(missing, (stages[::2], stages[1::2])):
            for rows_lost in found:
                survived("kill -9 of the client", MIGRATE, rows_lost)
    assert {stage.partition(" ")[0] for stage in at} >= {"CREATE", "ALTER", COMMIT, "40_grants.sql"}


def test_a_killed_upgrade_of_a_database_that_is_in_use_loses_none_of_its_rows(
    crashable: EmbeddedServer, survived: Survived
) -> None:
    with database(crashable) as url, session(url) as conn:
        migrate(url)
        with opened(url) as planner:
            base(planner, "s")
        held, done, watch = rows(conn, "s"), definitions(conn), Watch()
        with calling(url, MIGRATE, watch) as call:
            at = staged(watch, partial(call, ""), lambda: done)
        for stage in places(at, 8):
            conn.execute("DROP VIEW IF EXISTS planner.plan_overview")
            conn.execute("COMMENT ON SCHEMA planner IS 'evidence-planner objects 00'")
            killed_at(url, stage)
            migrate(url)
            assert lost(done, definitions(conn)) == 0
            check_invariants(url, "s")
            survived("kill -9 of the client", "migrate again", lost(held, rows(conn, "s")))
        assert [finding for finding in examine(url) if finding.ok is False] == []


@pytest.mark.parametrize("fault", KILLS)
def test_a_migration_whose_server_dies_says_so_and_can_be_run_again(
    crashable: EmbeddedServer, survived: Survived, fault: str
) -> None:
    at, done = rehearsed(crashable)

    def missing(client: Client) -> int:
        client.go()
        assert client.answer().code == "store.unavailable", client.stage
        with session(client.url) as conn:
            first = lost(at[client.stage], definitions(conn))
            client.go()
            assert client.answer() == Answer(), client.stage
            return first + lost(done, definitions(conn))

    with ExitStack() as stack:
        starts = [(stack.enter_context(database(crashable)), MIGRATE, "", stage) for stage in places(at, 4)]
        with standing(starts) as (clients, backends):
            KILLS[fault](crashable, backends)
            with crashable:
                for _, rows_lost in judged(missing, clients):
                    survived(fault, MIGRATE, rows_lost)
