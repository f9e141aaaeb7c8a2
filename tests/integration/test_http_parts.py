"""Further surfaces of one application: they get its service, run as long, and are guarded like it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import util

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from planner import Planner
from planner.surfaces.http import parts
from planner.surfaces.http.app import create_app
from planner.surfaces.http.limits import Deadline
from planner.surfaces.http.security import HEADERS
from planner.surfaces.http.service import Part, Service, service_of


def test_a_part_answers_with_the_service_s_planner_and_runs_as_long(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.md", "A text at 0.")
    running: list[str] = []

    def part(service: Service) -> Part:
        async def sources(request: Request) -> Response:
            assert service_of(request) is service
            access = await service.enter(request.scope, "read", Deadline.of(request.scope, service.limits))
            page = await service.calls.run(service.planner.sources, access.scope(scope))
            return PlainTextResponse(page.sources[0].source_id, headers={"Cache-Control": "max-age=1"})

        async def breaks(request: Request) -> Response:
            raise LookupError

        @asynccontextmanager
        async def held() -> AsyncIterator[None]:
            running.append("begun")
            yield
            running.append("ended")

        routes = [Route("/part", sources), Mount("/further", routes=[Route("/breaks", breaks)])]
        return Part(routes, held)

    app = create_app(planner, tokens=False, parts=[part])
    with TestClient(app, base_url="http://localhost") as http:
        assert running == ["begun"]
        answer = http.get("/part")
        assert (answer.status_code, answer.text) == (200, "a.md")
        kept = {name: value for name, value in HEADERS.items() if name != "Cache-Control"}
        assert {name: answer.headers[name] for name in kept} == kept
        assert answer.headers["cache-control"] == "max-age=1"
        assert http.get("/part", headers={"Host": "planner.example"}).status_code == 421
        assert http.get("/further/breaks").json()["code"] == "planner.error"
        assert "/part" not in http.get("/openapi.json").json()["paths"]
        counted = http.get("/metrics").text
        assert 'route="/part"' in counted
        assert 'route="/further/breaks"' in counted
        http.get("/further/nothing")
        assert 'route="/further"' in http.get("/metrics").text
    assert running == ["begun", "ended"]


def test_a_part_whose_library_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = parts.installed()
    assert len(everything) == sum(util.find_spec(library) is not None for library in parts.PARTS.values())
    monkeypatch.setattr(parts, "find_spec", lambda library: None)
    assert parts.installed() == []
