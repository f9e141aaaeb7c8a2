"""Who is at the other end: sessions that hold a token where nobody reads it, and tokens against forged forms.

A session lives in this process. The browser knows it by a random id in a cookie that no script can read; the
access token itself is never sent back, and is asked about anew at every request, so that one that was revoked
opens nothing any more.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

COOKIE = "planner_session"
LIFETIME_SECONDS = 12 * 3_600
MOST = 10_000
"""How many sessions there are at a time; the oldest makes room."""


@dataclass
class Sessions:
    """The sessions of this process. Thread-safe."""

    clock: Callable[[], float] = time.monotonic
    _tokens: OrderedDict[str, tuple[str, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def open(self, token: str) -> str:
        """Keep a token; return the id of its session, a new one."""
        session = new_id()
        with self._lock:
            self._tokens[session] = (token, self.clock() + LIFETIME_SECONDS)
            while len(self._tokens) > MOST:
                self._tokens.popitem(last=False)
        return session

    def token(self, session: str) -> str | None:
        """Return the token of a session, None where there is none, or it has ended."""
        with self._lock:
            token, until = self._tokens.get(session, ("", 0.0))
            if until <= self.clock():
                self._tokens.pop(session, None)
                return None
        return token

    def close(self, session: str) -> None:
        """End a session."""
        with self._lock:
            self._tokens.pop(session, None)

    def form_token(self, session: str) -> str:
        """Return what a form of this session must bring back, which no page of another origin can know."""
        return hmac.new(self._secret, session.encode(), sha256).hexdigest()

    def is_form_token(self, session: str, given: str) -> bool:
        """Tell whether a form brought back what it was given; in constant time."""
        return hmac.compare_digest(self.form_token(session).encode(), given.encode("utf-8", "replace"))


def new_id() -> str:
    """Return an id that nobody can guess."""
    return secrets.token_urlsafe(32)
