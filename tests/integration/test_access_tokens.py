"""Access tokens: kept as hashes, valid in one scope, and refused alike whatever is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from planner import Planner
from planner.errors import Forbidden, NotFound, RequestError, Unauthorized, UnknownScope
from planner.pipeline.tokens import PERMISSIONS
from tests.integration.graph import Connection, fan, fresh_scope
from tests.isolation.scenario import Sent, recorded

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class Time:
    """A clock that is set."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def timed(planner: Planner, scope: str, clock: Time) -> Planner:
    """Give a planner at a time that the test sets; the test's scope is there."""
    fan(0).into(planner, scope)
    return Planner.from_pool(planner.engine.store.pool, clock=clock)


@pytest.fixture
def watched(shared_database_url: str) -> Iterator[tuple[Planner, Sent]]:
    with recorded(shared_database_url) as opened:
        yield opened


def test_a_token_lets_in_to_its_scope_with_its_permissions(timed: Planner, scope: str) -> None:
    made = timed.create_token(scope, label="the assistant", permissions=["write", "read"])
    assert made.text.startswith(f"{scope}.")
    assert made.token.permissions == ("read", "write")
    assert (made.token.created_at, made.token.expires_at, made.token.revoked_at) == (NOW, None, None)
    grant = timed.authenticate(made.text)
    assert (grant.scope, grant.label, grant.permissions) == (scope, "the assistant", {"read", "write"})
    assert grant.token_id == made.token.token_id
    assert timed.tokens(scope) == (made.token,)


@pytest.mark.parametrize("held", PERMISSIONS)
def test_a_grant_permits_what_it_holds_and_nothing_else(timed: Planner, scope: str, held: Any) -> None:
    grant = timed.authenticate(timed.create_token(scope, label="a", permissions={held}).text)
    grant.require(held)
    for other in {*PERMISSIONS} - {held}:
        with pytest.raises(Forbidden, match=other) as caught:
            grant.require(other)
        assert caught.value.code == "auth.forbidden"


def test_only_the_hash_of_a_secret_is_kept_and_the_secret_is_in_no_repr_and_no_log(
    timed: Planner, scope: str, conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    made = timed.create_token(scope, label="a", permissions=["read"])
    secret = made.text.rpartition(".")[2]
    timed.authenticate(made.text)
    timed.revoke_token(scope, made.token.token_id)
    with pytest.raises(Unauthorized) as caught:
        timed.authenticate(made.text)
    (row,) = conn.execute(
        "SELECT t.token_hash, t::text FROM planner.api_token t JOIN planner.scope s USING (scope_id)"
        " WHERE s.name = %s",
        (scope,),
    ).fetchall()
    assert bytes(row[0]) == sha256(secret.encode()).digest()
    assert made.token.token_id == row[0].hex()[:16]
    shown = (row[1], repr(made), repr(timed.tokens(scope)), str(caught.value), repr(vars(caught.value)))
    assert [text for text in (*shown, caplog.text) if secret in text] == []


def refused(planner: Planner, text: str) -> tuple[Any, ...]:
    with pytest.raises(Unauthorized) as caught:
        planner.authenticate(text)
    assert caught.value.__cause__ is None
    return type(caught.value), str(caught.value), caught.value.to_dict()


def test_every_failure_looks_alike_and_asks_alike(
    timed: Planner, scope: str, clock: Time, watched: tuple[Planner, Sent]
) -> None:
    planner, sent = watched[0], watched[1]
    foreign = fresh_scope()
    fan(0).into(timed_again := Planner.from_pool(planner.engine.store.pool), foreign)
    assert timed_again.tokens(foreign) == ()
    good = timed.create_token(scope, label="a", permissions=["read"]).text
    short = timed.create_token(scope, label="b", permissions=["read"], expires_in=timedelta(hours=1)).text
    revoked = timed.create_token(scope, label="c", permissions=["read"])
    timed.revoke_token(scope, revoked.token.token_id)
    secret = good.rpartition(".")[2]
    wrong = {
        "malformed": [
            "",
            ".",
            scope,
            secret,
            f"{scope}.",
            f".{secret}",
            f"{good} ",
            f"{scope}.é" + secret[2:],
        ],
        "no text of a database": [f"{scope}.\0", "\ud800", f"{scope}\0.{secret}"],
        "another scope's": [f"{foreign}.{secret}"],
        "of no scope": [f"nowhere.{secret}"],
        "an unknown secret": [f"{scope}.{secret[::-1]}"],
        "expired": [short],
        "revoked": [revoked.text],
    }
    clock.now = NOW + timedelta(hours=1)
    asking = Planner.from_pool(planner.engine.store.pool, clock=clock)
    answers, asked = set(), set()
    for text in [text for texts in wrong.values() for text in texts]:
        sent.statements.clear()
        answers.add(repr(refused(asking, text)))
        asked.add(tuple(statement for statement, _ in sent.statements))
    sent.statements.clear()
    assert asking.authenticate(good).scope == scope
    asked.add(tuple(statement for statement, _ in sent.statements))
    assert (len(answers), len(asked)) == (1, 1)
    assert len(asked.pop()) == 1


def test_a_token_expires_at_its_time_and_not_before(timed: Planner, scope: str, clock: Time) -> None:
    until = NOW + timedelta(days=30)
    relative = timed.create_token(scope, label="a", permissions=["read"], expires_in=timedelta(days=30))
    absolute = timed.create_token(scope, label="b", permissions=["read"], expires_at=until)
    assert relative.token.expires_at == absolute.token.expires_at == until
    clock.now = until - timedelta(microseconds=1)
    for made in (relative, absolute):
        assert timed.authenticate(made.text).scope == scope
    clock.now = until
    for made in (relative, absolute):
        refused(timed, made.text)


def test_a_revoked_token_stays_revoked_since_the_first_time_and_is_listed(
    timed: Planner, scope: str, clock: Time
) -> None:
    made = [timed.create_token(scope, label=label, permissions=["read"]) for label in "ab"]
    first = timed.revoke_token(scope, made[0].token.token_id)
    assert first.revoked_at == NOW
    clock.now += timedelta(days=1)
    assert timed.revoke_token(scope, made[0].token.token_id) == first
    assert {token.label: token.revoked_at for token in timed.tokens(scope)} == {"a": NOW, "b": None}
    assert timed.authenticate(made[1].text).label == "b"


def test_tokens_go_with_their_scope(timed: Planner, scope: str) -> None:
    made = timed.create_token(scope, label="a", permissions=["read"])
    assert timed.delete_scope(scope).tokens == 1
    refused(timed, made.text)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"permissions": []}, "permissions"),
        ({"permissions": ["read", "admin"]}, "permissions"),
        ({"permissions": "read"}, "permissions"),
        ({"label": ""}, "label"),
        ({"label": "a" * 201}, "label"),
        ({"label": "a\0b"}, "label"),
        ({"expires_in": timedelta(0)}, "expires"),
        ({"expires_in": timedelta.max}, "expires"),
        ({"expires_at": NOW - timedelta(seconds=1)}, "expires"),
        ({"expires_at": NOW.replace(tzinfo=None, year=2040)}, "expires"),
        ({"expires_at": NOW + timedelta(1), "expires_in": timedelta(1)}, "expires_at"),
    ],
)
def test_what_makes_no_token_is_refused_and_named(
    timed: Planner, scope: str, asked: dict[str, Any], field: str
) -> None:
    with pytest.raises(RequestError) as caught:
        timed.create_token(scope, **{"label": "a", "permissions": ["read"], **asked})
    assert caught.value.detail["field"] == field
    assert timed.tokens(scope) == ()


def test_a_scope_or_a_token_that_is_not_there_is_named(timed: Planner, scope: str) -> None:
    for ask in (
        lambda: timed.create_token("nowhere", label="a", permissions=["read"]),
        lambda: timed.tokens("nowhere"),
        lambda: timed.revoke_token("nowhere", "0" * 16),
    ):
        with pytest.raises(UnknownScope):
            ask()
    for token_id in ("0" * 16, "", "%", "0" * 64):
        with pytest.raises(NotFound, match=re.escape(repr(token_id))):
            timed.revoke_token(scope, token_id)
