"""Access tokens: made for one scope, kept as a hash, looked up alike whatever is wrong with them.

A token reads `<scope>.<secret>`. The secret is random, 256 bits, and shown once; the store holds its SHA-256
(a fast hash suffices where nothing can be guessed), and its id is how that begins.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, get_args

from planner.engine import Engine
from planner.errors import Forbidden, NotFound, RequestError, Unauthorized
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.browse import storable
from planner.recall.frame import read_state
from planner.request import SCOPE_PATTERN
from planner.store.connect import run
from planner.store.retry import retried
from planner.store.write import hold_scope

Permission = Literal["read", "write", "erase", "inspect"]

PERMISSIONS: tuple[Permission, ...] = get_args(Permission)

SECRET_BYTES = 32
MAX_LABEL = 200
ID_DIGITS = 16
"""Hexadecimal digits of a token's id."""

TOKEN = re.compile(rf"({SCOPE_PATTERN[1:-1]})\.([A-Za-z0-9_-]{{43}})")

NOBODY = ""
"""No scope's name: what is no token is looked up in it."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of an access token; `expires_at` is None where it never does."""

    scope: str
    token_id: str
    label: str
    permissions: tuple[Permission, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """Return the token's description as JSON data."""
        return {
            "scope": self.scope,
            "token_id": self.token_id,
            "label": self.label,
            "permissions": list(self.permissions),
            "created_at": self.created_at.isoformat(),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
            "revoked_at": self.revoked_at.isoformat() if self.revoked_at else None,
        }


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made: `text` is what its holder sends, and cannot be had again."""

    token: Token
    text: str = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the token as JSON data, its text too."""
        return {"text": self.text, **self.token.to_dict()}


@dataclass(frozen=True, slots=True)
class Grant:
    """What a valid token lets its holder do, in one scope."""

    scope: str
    permissions: frozenset[Permission]
    label: str
    token_id: str

    def require(self, permission: Permission) -> None:
        """Raise Forbidden where the token does not permit this."""
        if permission not in self.permissions:
            raise Forbidden(
                f"the token does not permit {permission!r}; make one with that permission",
                permission=permission,
                token_id=self.token_id,
            )


def token_text(scope: str, secret: str) -> str:
    """Write a token as its holder sends it."""
    return f"{scope}.{secret}"


def parse_token(text: str) -> tuple[str, str] | None:
    """Return a token's scope, which may hold dots, and its secret; None where the text is no token."""
    match = TOKEN.fullmatch(text)
    return (match[1], match[2]) if match else None


def create(
    engine: Engine,
    scope: str,
    *,
    label: str,
    permissions: Collection[str],
    expires: datetime | timedelta | None,
) -> NewToken:
    """Make a token for a scope, which expires at a time or after one. Raises RequestError, UnknownScope."""
    now = engine.clock()
    if not 1 <= len(storable(label, "label")) <= MAX_LABEL:
        raise RequestError(f"a token's label has 1 to {MAX_LABEL} characters", field="label")
    secret = secrets.token_urlsafe(SECRET_BYTES)
    row = (_hash(secret), label, checked(permissions), now, _expiry(expires, now))
    _add(engine, scope, row)
    return NewToken(_token(scope, (*row, None)), token_text(scope, secret))


@retried
def _add(engine: Engine, scope: str, row: tuple[object, ...]) -> None:
    """Keep a token; the repeat of an attempt whose answer was lost finds it there."""
    scope_id = id_of_scope(scope)
    names = ("token_hash", "label", "permissions", "created_at", "expires_at")
    with engine.store.scoped(scope_id, "writer") as conn:
        read_state(conn, scope, scope_id, None)
        hold_scope(conn, scope_id, scope)
        run(conn, "add_token", {"scope_id": scope_id, **dict(zip(names, row, strict=True))})


@retried
def tokens(engine: Engine, scope: str) -> tuple[Token, ...]:
    """Return a scope's tokens, oldest first, those that expired or were revoked too. Raises UnknownScope."""
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "writer", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        return tuple(_token(scope, row) for row in run(conn, "tokens", {"scope_id": scope_id}))


@retried
def revoke(engine: Engine, scope: str, token_id: str) -> Token:
    """Revoke a token; one that was revoked before stays as it is. Raises UnknownScope, NotFound."""
    scope_id = id_of_scope(scope)
    params = {"scope_id": scope_id, "token_id": storable(token_id, "token_id"), "now": engine.clock()}
    with engine.store.scoped(scope_id, "writer") as conn:
        read_state(conn, scope, scope_id, None)
        row = run(conn, "revoke_token", params).fetchone()
        if row is None:
            raise NotFound(f"no token {token_id!r} in scope {scope!r}", token_id=token_id)
        return _token(scope, row)


@retried
def authenticate(engine: Engine, text: str) -> Grant:
    """Return what a token permits. Raises Unauthorized, the same whatever is wrong with it.

    What is no token at all is looked up too, and hashes are compared in constant time, also with none.
    """
    scope, secret = parse_token(text) or (NOBODY, text)
    scope_id, token_hash = id_of_scope(scope), _hash(secret)
    with engine.store.scoped(scope_id, "writer", snapshot=True) as conn:
        params = {"scope_id": scope_id, "token_hash": token_hash, "now": engine.clock()}
        row = run(conn, "find_token", params).fetchone()
    found, is_live, label, permissions = row or (bytes(len(token_hash)), False, "", ())
    if not (hmac.compare_digest(bytes(found), token_hash) and is_live):
        raise Unauthorized("the access token is not valid: it is unknown, expired or revoked")
    return Grant(scope, frozenset(permissions), label, _id(token_hash))


def checked(permissions: Collection[str]) -> list[Permission]:
    """Return permissions in the order of their list. Raises RequestError for none, or for unknown ones."""
    named = set() if isinstance(permissions, str) else set(permissions)
    if not named or not named <= set(PERMISSIONS):
        raise RequestError(
            f"permissions are some of {', '.join(PERMISSIONS)}, not {permissions!r}", field="permissions"
        )
    return [permission for permission in PERMISSIONS if permission in named]


def _expiry(expires: datetime | timedelta | None, now: datetime) -> datetime | None:
    try:
        until = now + expires if isinstance(expires, timedelta) else expires
    except OverflowError:
        until = now  # so far from now that it is no date
    if until is not None and (until.tzinfo is None or until <= now):
        raise RequestError(
            f"{expires} is no expiry: a token expires in the future, at a time with a time zone",
            field="expires",
        )
    return until


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _id(token_hash: bytes) -> str:
    return token_hash.hex()[:ID_DIGITS]


def _token(scope: str, row: Sequence[Any]) -> Token:
    token_hash, label, permissions, *times = row
    return Token(scope, _id(bytes(token_hash)), label, tuple(permissions), *times)
