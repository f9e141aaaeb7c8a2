"""The application: one planner, its routes, and what is asked of every request to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from planner.async_planner import AsyncPlanner
from planner.client import Planner
from planner.errors import PlannerError, RequestError
from planner.surfaces.http import health
from planner.surfaces.http.limits import DEADLINE, BodyLimit, Limits
from planner.surfaces.http.logs import REQUEST_ID, Observed, note_error
from planner.surfaces.http.metrics import Metrics
from planner.surfaces.http.openapi import describe
from planner.surfaces.http.problems import BadMethod, NoRoute, problem
from planner.surfaces.http.routes import deliveries, plans, sources
from planner.surfaces.http.routes.sources import IDEMPOTENCY_KEY
from planner.surfaces.http.security import LoopbackOnly, SecurityHeaders
from planner.surfaces.http.service import Part, PartOf, Service

METHODS = ("GET", "POST", "DELETE")

PROBES, PROBE_MS = 2, 2_000
"""How many checks of /readyz run at a time, and how long one may take."""


def create_app(planner: Planner, *, tokens: bool, parts: Sequence[PartOf] = ()) -> FastAPI:
    """Return the application of a planner, which stays the caller's to close.

    With `tokens` every route of /v1 asks for one. Without, the application is for the loopback interface
    alone, and answers to no other name. `parts` are further surfaces (a viewer, MCP), which get the service
    and give routes.
    """
    settings = planner.engine.settings
    metrics = Metrics(planner.engine.store)
    watched = Planner(replace(planner.engine, observe=metrics.plan))
    calls, probes = AsyncPlanner(watched), AsyncPlanner(watched, limit=PROBES, deadline_ms=PROBE_MS)
    service = Service(watched, calls, probes, Limits.of(settings), metrics, tokens)
    made = [part(service) for part in parts]

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as held:
            for part in made:
                await held.enter_async_context(part.running())
            yield

    app = FastAPI(
        title="Evidence planner",
        version=version("evidence-planner"),
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=running,
        middleware=_middleware(service, settings.cors_origins),
        exception_handlers={
            PlannerError: _planner_error,
            RequestValidationError: _invalid,
            HTTPException: _http_exception,
        },
    )
    app.state.service = service
    app.openapi = partial(describe, app, tokens=tokens)  # type: ignore[method-assign]
    surfaces: list[APIRouter | Part] = [plans.routes, deliveries.routes, sources.routes, health.routes]
    for surface in (*surfaces, *made):
        app.router.routes.extend(surface.routes)
    return app


def _middleware(service: Service, origins: Sequence[str]) -> list[Middleware]:
    """Return what every request passes, outermost first."""
    passed = [Middleware(Observed, metrics=service.metrics), Middleware(SecurityHeaders)]
    if not service.tokens:
        passed.append(Middleware(LoopbackOnly, origins=origins))
    if origins:
        passed.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(origins),
                allow_methods=METHODS,
                allow_headers=["Authorization", "Content-Type", IDEMPOTENCY_KEY, DEADLINE, REQUEST_ID],
                expose_headers=["Retry-After", REQUEST_ID],
            )
        )
    return [*passed, Middleware(BodyLimit, max_bytes=service.limits.max_body_bytes)]


async def _planner_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, PlannerError)
    note_error(request.scope, error)
    return problem(error)


async def _invalid(request: Request, error: Exception) -> Response:
    """Answer a bad path or query, naming the field and the rule."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return await _planner_error(request, RequestError(f"unknown parameter {field!r}", field=field))
    message = first["msg"].removeprefix("Value error, ")
    return await _planner_error(request, RequestError(f"{field}: {message}", field=field))


async def _http_exception(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: an unknown path, a method that a path does not take."""
    assert isinstance(error, HTTPException)
    path, routes = request.scope["path"], request.app.routes
    matching = [route for route in routes if isinstance(route, Route) and route.path_regex.match(path)]
    methods = ", ".join(sorted({method for route in matching for method in route.methods or ()}))
    found: PlannerError = NoRoute()
    headers = {}
    if error.status_code == 405 and methods:
        found, headers = BadMethod(f"this path takes {methods}"), {"Allow": methods}
    note_error(request.scope, found)
    return problem(found, headers)
