"""Who may do what, and the headers and checks that hold for every answer.

With tokens a request is its token's: another scope is to it as one that is not there. Without tokens the
server is on the loopback interface alone, where a page in a browser could still reach it: by a name that
resolves to it (DNS rebinding), which the Host header shows, or from its own origin, which Origin shows.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planner.errors import Unauthorized, UnknownPlan, UnknownScope
from planner.granting import Grant
from planner.surfaces.http.asgi import header, sending
from planner.surfaces.http.problems import BadHost, BadOrigin, problem
from planner.tracing import check_scope, plan_ref
from planner.types import PlanRef

Permission = Literal["read", "write", "erase", "inspect"]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every answer says, unless it says something else itself."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may reach: its token's scope, or every scope where the server has no tokens."""

    grant: Grant | None = None

    def scope(self, name: str) -> str:
        """Return a scope's name. Raises RequestError, and UnknownScope for another's as for none."""
        check_scope(name)
        if self.grant is not None and self.grant.scope != name:
            raise UnknownScope(f"no scope {name!r}", scope=name)
        return name

    def plan(self, text: str) -> PlanRef:
        """Return a plan's reference. Raises RequestError, and UnknownPlan for another's as for none."""
        ref = plan_ref(text)
        if self.grant is not None and self.grant.scope != ref.scope:
            raise UnknownPlan(f"no plan {ref}", plan=str(ref))
        return ref

    def require(self, permission: Permission) -> None:
        """Raise Forbidden where the token lacks a permission."""
        if self.grant is not None:
            self.grant.require(permission)


def bearer(scope: Scope) -> str:
    """Return the token that a request brings. Raises Unauthorized."""
    kind, _, token = (header(scope, "authorization") or "").partition(" ")
    if kind.lower() != "bearer" or not token:
        raise Unauthorized("send a token as Authorization: Bearer <scope>.<secret>")
    return token.strip()


def is_loopback(host: str) -> bool:
    """Say whether a name or address is the loopback interface's."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class SecurityHeaders:
    """Middleware that gives every answer the headers that it lacks."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers."""

        def add(message: Message, headers: MutableHeaders) -> None:
            for name, value in HEADERS.items():
                headers.setdefault(name, value)

        await self.app(scope, receive, sending(send, add))


class LoopbackOnly:
    """Middleware of a server without tokens: only loopback names, and no page of another origin."""

    def __init__(self, app: ASGIApp, origins: Sequence[str] = ()) -> None:
        """Wrap an application; `origins` are those that the operator lets in."""
        self.app = app
        self.origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what a page in a browser could have sent from elsewhere."""
        if scope["type"] == "http":
            host, origin = header(scope, "host") or "", header(scope, "origin")
            if not is_loopback(_parts(f"//{host}")[0]):
                await problem(BadHost())(scope, receive, send)
                return
            if origin is not None and origin not in self.origins and _parts(origin)[1] != host.lower():
                await problem(BadOrigin())(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _parts(url: str) -> tuple[str, str]:
    """Return the host that a URL names, without and with its port; empty where it names none."""
    try:
        found = urlsplit(url)
        return found.hostname or "", found.netloc.lower()
    except ValueError:
        return "", ""
