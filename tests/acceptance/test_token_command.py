"""`planner token`: a token is made and printed once, listed without its secret, and revoked."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from planner import Planner
from planner.errors import Unauthorized
from tests.acceptance.running import Cli


@pytest.fixture
def own(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the URL of a database of the test's own, which the environment names and whose scope is `s`."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    with Planner.connect(database_url) as planner:
        planner.ingest_text("s", "a.md", "The gate closes at ten.")
    return database_url


def test_a_token_is_printed_alone_and_once_and_works_until_it_is_revoked(cli: Cli, own: str) -> None:
    ran = cli("token", "create", "s", "--label", "the assistant", "--permission", "read", "--expires", "30d")
    assert ran.code == 0
    assert "shown this once" in ran.err
    assert ran.out.count("\n") == 1
    token = ran.out.strip()
    listed = cli("token", "list", "s")
    assert "the assistant" in listed.out
    assert token.rpartition(".")[2] not in listed.out + ran.err
    with Planner.connect(own) as planner:
        grant = planner.authenticate(token)
        assert grant.permissions == {"read"}
        assert cli("token", "revoke", "s", grant.token_id, "--yes").out == (
            f"revoked {grant.token_id} (the assistant)\n"
        )
        with pytest.raises(Unauthorized):
            planner.authenticate(token)


def test_json_has_the_token_and_what_is_kept_of_it(cli: Cli, own: str) -> None:
    command = ("token", "create", "s", "--label", "a", "--permission", "write", "--permission", "read")
    made = cli(*command, "--expires", "12h", "--json").json
    assert made["permissions"] == ["read", "write"]
    lasts = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert lasts == timedelta(hours=12)
    (kept,) = cli("token", "list", "s", "--json").json["tokens"]
    assert {**kept, "text": made["text"]} == made
    revoked = cli("token", "revoke", "s", kept["token_id"], "--yes", "--json").json
    assert {**revoked, "revoked_at": None} == kept
    assert cli("token", "list", "s", "--json").json["tokens"] == [revoked]


def test_revoking_asks_and_without_a_terminal_wants_yes(cli: Cli, own: str) -> None:
    made = cli("token", "create", "s", "--label", "a", "--permission", "read", "--json").json
    ran = cli("token", "revoke", "s", made["token_id"])
    assert (ran.code, "--yes" in ran.err) == (2, True)
    assert cli("token", "list", "s", "--json").json["tokens"][0]["revoked_at"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("create", "s", "--permission", "read"), 2, "--label"),
        (("create", "s", "--label", "a"), 2, "--permission"),
        (("create", "s", "--label", "a", "--permission", "admin"), 2, "read, write, erase, inspect"),
        (("create", "s", "--label", "a", "--permission", "read", "--expires", "soon"), 2, "no duration"),
        (("create", "s", "--label", "a", "--permission", "read", "--expires", "0s"), 2, "in the future"),
        (("create", "nowhere", "--label", "a", "--permission", "read"), 1, "no scope 'nowhere'"),
        (("list", "nowhere"), 1, "no scope 'nowhere'"),
        (("revoke", "s", "0" * 16, "--yes"), 1, "no token"),
    ],
)
def test_what_cannot_be_done_is_said(
    cli: Cli, own: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ran = cli("token", *arguments)
    assert (ran.code, said in ran.err) == (code, True), ran.err
    assert cli("token", "list", "s").out == "no token yet; `planner token create SCOPE` makes one\n"
