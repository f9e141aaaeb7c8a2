"""Whether the process runs, and whether it can answer; and what it counts. None of them asks for a token."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from planner.surfaces.http.answers import AliveAnswer, ReadyAnswer
from planner.surfaces.http.metrics import CONTENT_TYPE
from planner.surfaces.http.openapi import router
from planner.surfaces.http.service import service_of

routes = router("operation")


@routes.get("/livez", responses={200: {"model": AliveAnswer}})
async def livez() -> Response:
    """Say that the process runs."""
    return JSONResponse({"status": "alive"})


@routes.get("/readyz", responses={200: {"model": ReadyAnswer}, 503: {"model": ReadyAnswer}})
async def readyz(request: Request) -> Response:
    """Say whether the schema, the pool and the embedder can serve; 503 where one cannot."""
    service = service_of(request)
    found = await service.probes.run(service.planner.ready)
    return JSONResponse(found.to_dict(), 200 if found.ready else 503)


@routes.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return what is counted, in Prometheus's text format."""
    return Response(service_of(request).metrics.text(), media_type=CONTENT_TYPE)
