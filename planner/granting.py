"""The part of the front door that lets callers in: access tokens of a scope, and what they permit."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from planner.engine import Engine
from planner.errors import RequestError
from planner.pipeline import tokens
from planner.pipeline.tokens import PERMISSIONS, Grant, NewToken, Permission, Token
from planner.tracing import check_scope

__all__ = ["PERMISSIONS", "Grant", "Granting", "NewToken", "Permission", "Token"]


class Granting:
    """Makes, lists, revokes and checks the access tokens of scopes, `<scope>.<secret>`."""

    engine: Engine

    def create_token(
        self,
        scope: str,
        *,
        label: str,
        permissions: Collection[str],
        expires_in: timedelta | None = None,
        expires_at: datetime | None = None,
    ) -> NewToken:
        """Make a token that permits some of `read`, `write`, `erase` and `inspect` in a scope.

        Its text is in the answer alone: the store keeps a hash. Without an expiry it is valid until it is
        revoked. Raises RequestError, UnknownScope.
        """
        if expires_in is not None and expires_at is not None:
            raise RequestError("give expires_in or expires_at, not both", field="expires_at")
        expires = expires_at if expires_in is None else expires_in
        return tokens.create(
            self.engine, check_scope(scope), label=label, permissions=permissions, expires=expires
        )

    def tokens(self, scope: str) -> tuple[Token, ...]:
        """Return a scope's tokens, oldest first, expired and revoked ones too. Raises UnknownScope."""
        return tokens.tokens(self.engine, check_scope(scope))

    def revoke_token(self, scope: str, token_id: str) -> Token:
        """Revoke a token, at once and for good. Raises UnknownScope, NotFound."""
        return tokens.revoke(self.engine, check_scope(scope), token_id)

    def authenticate(self, bearer: str) -> Grant:
        """Return what the holder of a token may do. Raises Unauthorized, whatever is wrong with it."""
        return tokens.authenticate(self.engine, bearer)
