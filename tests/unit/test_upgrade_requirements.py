"""What a server must have, and what is said where it has not: without a server."""

from __future__ import annotations

import pytest

from planner.errors import SchemaAhead, SchemaBehind, UnsupportedServer
from planner.store.objects import ROLES, dba_statements, objects_hash, read_seal, seal
from planner.store.requirements import Facts, require_server, version
from planner.store.resources import head_revision, revisions
from planner.store.upgrade import MigrationStatus


def _facts(server: int = 170002, vector: str | None = "0.8.0", available: str | None = "0.8.0") -> Facts:
    return Facts(
        server, vector, available, "public", "app", "db", superuser=False, bypasses_row_security=False
    )


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (_facts(server=140011), "PostgreSQL 14.11.* 15 or newer"),
        (_facts(vector=None, available=None), "no pgvector.*postgresql-17-pgvector"),
        (_facts(vector="0.7.4"), "0.7.4.* 0.8 or newer: run ALTER EXTENSION vector UPDATE"),
        (_facts(vector="0.7.4", available="0.7.4"), "install a newer package"),
        (_facts(vector=None, available="0.5.1"), "0.5.1.* 0.8 or newer"),
    ],
)
def test_a_server_that_is_too_old_is_refused_with_what_it_needs(facts: Facts, said: str) -> None:
    with pytest.raises(UnsupportedServer, match=said):
        require_server(facts)


@pytest.mark.parametrize(
    "facts",
    [
        _facts(server=150000),
        _facts(vector="0.10.0"),
        _facts(vector="1.0"),
        _facts(vector=None, available="0.8.6"),
    ],
)
def test_a_server_that_is_new_enough_is_accepted(facts: Facts) -> None:
    require_server(facts)


def test_versions_compare_by_number_not_by_letter() -> None:
    assert version("0.10.1") > version("0.8.6") > version("0.8") > version("0.7.4")
    assert version("0.9.0-dev") == (0, 9)


def test_the_statements_for_a_dba_quote_the_login_and_know_the_server() -> None:
    *create, grant = dba_statements('we"ird', missing=("planner_owner",))
    assert create == ['CREATE ROLE "planner_owner" NOLOGIN NOBYPASSRLS;']
    assert grant.endswith('TO "we""ird" WITH INHERIT FALSE, SET TRUE;')
    assert all(f'"{role}"' in grant for role in ROLES)
    assert dba_statements("app", inherit_clause=False)[-1].endswith('TO "app";')


def test_the_seal_is_read_back_and_a_foreign_comment_is_none() -> None:
    literal = seal(objects_hash()).as_string(None).removeprefix("COMMENT ON SCHEMA planner IS ").strip("'")
    assert read_seal(literal) == objects_hash()
    assert read_seal("somebody else's schema") is None
    assert read_seal(None) is None


def _status(current: str | None, built: str | None) -> MigrationStatus:
    pending = () if current in revisions() else revisions()
    return MigrationStatus(current, head_revision(), pending, built, "wanted")


def test_only_the_head_with_this_versions_objects_is_current() -> None:
    _status(head_revision(), "wanted").require_current()
    for behind in (_status(None, None), _status(head_revision(), "other"), _status(head_revision(), None)):
        assert not behind.up_to_date
        with pytest.raises(SchemaBehind, match="planner migrate"):
            behind.require_current()


def test_an_unknown_revision_is_ahead_not_behind() -> None:
    with pytest.raises(SchemaAhead, match="upgrade evidence-planner"):
        _status("9999_future", "wanted").require_current()
