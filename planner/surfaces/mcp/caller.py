"""Who calls a tool, and what that one may reach: a token's holder, or the operator on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.errors import Forbidden, RequestError
from planner.granting import PERMISSIONS, Grant, Permission
from planner.surfaces.http.security import Access
from planner.types import PlanRef


@dataclass(frozen=True, slots=True)
class Caller:
    """What a call may reach; a server that only reads refuses to write whatever a token permits."""

    access: Access = field(default_factory=Access)
    read_only: bool = False

    @classmethod
    def operator(cls, scope: str | None, *, read_only: bool) -> Caller:
        """Return one who may do everything, or everything in one scope."""
        grant = None if scope is None else Grant(scope, frozenset(PERMISSIONS), "operator", "")
        return cls(Access(grant), read_only)

    def may(self, permission: Permission) -> bool:
        """Say whether something is permitted."""
        grant = self.access.grant
        return (grant is None or permission in grant.permissions) and not (
            self.read_only and permission == "write"
        )

    def require(self, permission: Permission) -> None:
        """Raise Forbidden where something is not permitted."""
        self.access.require(permission)
        if not self.may(permission):
            raise Forbidden("this server was started to read alone", permission=permission)

    def scope(self, name: str | None) -> str:
        """Return a scope by name, the caller's own where none is named.

        Raises RequestError where there is no such one, UnknownScope for another's as for none.
        """
        own = self.access.grant.scope if self.access.grant else None
        chosen = name if name is not None else own
        if chosen is None:
            raise RequestError("scope: name one; neither a token nor the server has a scope", field="scope")
        return self.access.scope(chosen)

    def plan(self, text: str) -> PlanRef:
        """Return a plan's reference. Raises RequestError, and UnknownPlan for another's as for none."""
        return self.access.plan(text)
