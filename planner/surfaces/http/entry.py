"""How a request enters: the dependency that routes name a permission with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request

from planner.surfaces.http.limits import Deadline
from planner.surfaces.http.security import Permission
from planner.surfaces.http.service import Exchange, service_of


def _entering(permission: Permission) -> Callable[[Request], Awaitable[Exchange]]:
    async def enter(request: Request) -> Exchange:
        service = service_of(request)
        deadline = Deadline.of(request.scope, service.limits)
        access = await service.enter(request.scope, permission, deadline)
        return Exchange(service, request, access, deadline)

    return enter


Reading = Annotated[Exchange, Depends(_entering("read"))]
Writing = Annotated[Exchange, Depends(_entering("write"))]
Erasing = Annotated[Exchange, Depends(_entering("erase"))]
Inspecting = Annotated[Exchange, Depends(_entering("inspect"))]
