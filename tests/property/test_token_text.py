"""The text of an access token gives back its scope and its secret, and nothing else is a token."""

from __future__ import annotations

import re
import secrets

from hypothesis import given
from hypothesis import strategies as st

from planner.pipeline.tokens import SECRET_BYTES, parse_token, token_text
from planner.request import SCOPE_PATTERN

SCOPES = st.from_regex(re.compile(SCOPE_PATTERN[1:-1], re.ASCII), fullmatch=True)
SECRETS = st.from_regex(r"[A-Za-z0-9_-]{43}", fullmatch=True)


@given(SCOPES, SECRETS)
def test_scope_and_secret_come_back_whatever_dots_the_scope_has(scope: str, secret: str) -> None:
    assert parse_token(token_text(scope, secret)) == (scope, secret)


@given(st.one_of(st.text(), st.builds("{}.{}".format, SCOPES | st.text(max_size=3), SECRETS | st.text())))
def test_what_is_read_as_a_token_is_one(text: str) -> None:
    parsed = parse_token(text)
    if parsed is not None:
        scope, secret = parsed
        assert token_text(scope, secret) == text
        assert re.fullmatch(SCOPE_PATTERN[1:-1], scope)
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", secret)


def test_a_secret_has_256_bits() -> None:
    drawn = {secrets.token_urlsafe(SECRET_BYTES) for _ in range(100)}
    assert SECRET_BYTES * 8 >= 256
    assert {len(secret) for secret in drawn} == {43}
    assert len(drawn) == 100
