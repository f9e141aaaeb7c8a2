"""Over HTTP a token reaches its scope alone: of another it tells nothing, not even that it is there.

Two tenants hold the same. Every route is asked with each permission, for the own scope, for the other's and
for none; answers are compared byte for byte, but for the names and ids that were sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

from planner import Planner
from planner.granting import PERMISSIONS, Permission
from tests.http_service import client, routes_of
from tests.integration.graph import Connection, rows_of
from tests.isolation.twins import NOBODY, A, B, invalid_tokens, twins

VARYING = frozenset({"x-request-id", "date", "content-length"})
"""Headers that no two answers share; the length follows from a body, which is compared itself."""


@dataclass(frozen=True)
class Route:
    """A route with what it is sent; `{scope}`, `{plan}` and `{other}` stand for whom it is sent about."""

    permission: Permission
    method: str
    path: str
    sent: str = ""
    query: str = ""


ROUTES = (
    Route("inspect", "GET", "/v1/plans", query="?scope={scope}"),
    Route("read", "POST", "/v1/plans", '{"scope": "{scope}", "text": "at 0"}'),
    Route("read", "GET", "/v1/plans/{plan}"),
    Route("inspect", "GET", "/v1/plans/{plan}", query="?include=rejected"),
    Route("inspect", "GET", "/v1/plans/{plan}/why", query="?what=doc.md"),
    Route("inspect", "POST", "/v1/plans/{plan}/replay"),
    Route("inspect", "POST", "/v1/plans/{plan}/replan", "{}"),
    Route("inspect", "GET", "/v1/plans/{plan}/diff/{other}"),
    Route("read", "POST", "/v1/plans/{plan}/deliveries", "{}"),
    Route("read", "POST", "/v1/context", '{"scope": "{scope}", "text": "at 0"}'),
    Route("read", "POST", "/v1/citations/verify", '{"plan": "{plan}", "quote": "gate", "evidence": "E1"}'),
    Route("write", "POST", "/v1/scopes/{scope}/sources", '{"id": "new.md", "text": "New at 50"}'),
    Route(
        "write", "POST", "/v1/scopes/{scope}/sources/{source}/append", '{"messages": [{"content": "at 60"}]}'
    ),
    Route("read", "GET", "/v1/scopes/{scope}/sources"),
    Route("read", "GET", "/v1/scopes/{scope}/sources/{source}"),
    Route("erase", "DELETE", "/v1/scopes/{scope}/sources/{source}"),
)
"""Every route that is about a scope; those that leave the least behind first."""

by_route = pytest.mark.parametrize("route", ROUTES, ids=lambda r: f"{r.method} {r.path}{r.query}")


@dataclass
class Tenants:
    """The service, a plan of each tenant, and how to make tokens."""

    http: TestClient
    planner: Planner
    plans: Mapping[str, str]

    def token(self, scope: str, *permissions: str) -> str:
        return self.planner.create_token(scope, label="test", permissions=permissions).text

    def ask(self, route: Route, token: str | None, scope: str, plan: str) -> tuple[int, dict[str, str], str]:
        """Return status, headers and body of an answer; names and ids that were sent are masked in it."""
        places = {"scope": scope, "plan": f"{scope}:{plan}", "other": f"{scope}:{plan}", "source": "doc.md"}
        if route.path.endswith("/append"):
            places["source"] = "talk"

        def filled(text: str) -> str:
            return re.sub(r"\{(scope|plan|other|source)\}", lambda found: places[found[1]], text)

        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        if route.sent:
            headers["Content-Type"] = "application/json"
        url = filled(route.path + route.query)
        answer = self.http.request(route.method, url, content=filled(route.sent) or None, headers=headers)
        kept = {name: value for name, value in answer.headers.items() if name not in VARYING}
        masked = answer.text.replace(plan, "PLAN").replace(scope, "SCOPE")
        return answer.status_code, kept, masked


@contextmanager
def opened(url: str) -> Iterator[Tenants]:
    """Serve the twins."""
    with twins(url) as (planner, plans), client(planner, tokens=True) as http:
        yield Tenants(http, planner, plans)


@pytest.fixture(scope="module")
def tenants(module_database_url: str) -> Iterator[Tenants]:
    with opened(module_database_url) as made:
        yield made


def test_every_route_that_is_about_a_scope_is_tried(tenants: Tenants) -> None:
    tried = {(route.method, route.path) for route in ROUTES}
    assert tried == {
        (method, path) for method, path in routes_of(tenants.http.app) if path.startswith("/v1/")
    }


@by_route
@pytest.mark.parametrize("permission", [*PERMISSIONS, "all"])
def test_another_scope_answers_as_none_and_keeps_its_rows(
    tenants: Tenants, rows: Connection, route: Route, permission: str
) -> None:
    permissions = PERMISSIONS if permission == "all" else (permission,)
    token = tenants.token(A, *permissions)
    before = rows_of(rows, B)
    foreign = tenants.ask(route, token, B, tenants.plans[B])
    for scope, plan in ((NOBODY, tenants.plans[B]), (NOBODY, str(uuid4())), (B, str(uuid4()))):
        assert tenants.ask(route, token, scope, plan) == foreign
    may = route.permission in permissions and (route.query != "?include=rejected" or "read" in permissions)
    assert foreign[0] == (404 if may else 403)
    assert rows_of(rows, B) == before
    assert rows_of(rows, NOBODY) == dict.fromkeys(before, 0)


@by_route
def test_the_id_of_another_s_plan_is_none_in_the_own_scope(tenants: Tenants, route: Route) -> None:
    if "{plan}" not in route.path + route.sent:
        return
    token = tenants.token(A, *PERMISSIONS)
    theirs = tenants.ask(route, token, A, tenants.plans[B])
    assert theirs == tenants.ask(route, token, A, str(uuid4()))
    assert theirs[0] == 404


@by_route
def test_a_token_that_is_not_valid_is_like_any_other(tenants: Tenants, route: Route) -> None:
    answers = {
        (why, scope): tenants.ask(route, token, scope, tenants.plans[B])
        for why, token in invalid_tokens(tenants.planner).items()
        for scope in (A, B, NOBODY)
    }
    (same,) = {(status, tuple(sorted(headers.items())), text) for status, headers, text in answers.values()}
    assert same[0] == 401
    assert ("www-authenticate", 'Bearer realm="planner"') in same[1]
    assert '"code": "auth.unauthorized"' in same[2]
    assert A not in same[2]


@by_route
@pytest.mark.parametrize(
    "header", ["", "Basic {token}", "{token}", "Bearer", "Bearer ", "Bearer {token} {token}"]
)
def test_without_a_token_there_is_no_answer(tenants: Tenants, route: Route, header: str) -> None:
    token = tenants.token(A, *PERMISSIONS)
    http = tenants.http
    http.headers["Authorization"] = header.format(token=token)
    try:
        own, other = (tenants.ask(route, None, scope, tenants.plans[B]) for scope in (A, B))
    finally:
        del http.headers["Authorization"]
    assert own == other
    assert own[0] == 401


@by_route
def test_each_route_asks_for_its_permission_alone(tenants: Tenants, route: Route) -> None:
    needed = {route.permission} | ({"read"} if route.query == "?include=rejected" else set())
    rest = set(PERMISSIONS) - {route.permission}
    refused = tenants.ask(route, tenants.token(A, *rest), A, tenants.plans[A])
    assert refused[0] == 403
    assert f'"permission": "{route.permission}"' in refused[2]
    assert tenants.ask(route, tenants.token(A, *needed), A, tenants.plans[A])[0] in (200, 404)


def test_the_same_content_is_answered_the_same(database_url: str) -> None:
    with opened(database_url) as made:
        tokens = {scope: made.token(scope, *PERMISSIONS) for scope in (A, B)}
        for route in ROUTES:
            told = [made.ask(route, tokens[scope], scope, made.plans[scope]) for scope in (A, B)]
            (status, headers, text), (status_too, headers_too, text_too) = told
            assert (status, headers) == (status_too, headers_too)
            assert status == 200, (route, text)
            assert _without_ids(text) == _without_ids(text_too)


def test_health_and_metrics_name_no_tenant(tenants: Tenants) -> None:
    for path in ("/livez", "/readyz", "/metrics", "/openapi.json"):
        answer = tenants.http.get(path)
        assert answer.status_code == 200
        assert not any(name in answer.text for name in (A, B, *tenants.plans.values()))


def _without_ids(text: str) -> str:
    """Leave out ids, which are random, and how long something took."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
    return re.sub(r'"(timings_ms":\{[^}]*\}|took_ms":[0-9.]+)', "TIME", text)
