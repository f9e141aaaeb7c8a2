"""What the service refuses: each is a problem that names what was wrong, and leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from planner import Planner, Settings
from planner.errors import InsufficientEvidence
from planner.ingest.media import IMPORT
from planner.surfaces.http.security import HEADERS
from tests.http_service import client
from tests.integration.graph import Connection, fan, rows_of

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def http(planner: Planner, scope: str) -> Iterator[TestClient]:
    """Give a client of a service whose scope holds two facts."""
    fan(0, 30).into(planner, scope)
    with client(planner) as opened:
        yield opened


def refused(response: Any, status: int, code: str, field: str | None = None) -> dict[str, Any]:
    """Return the problem that an answer is."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    said: dict[str, Any] = response.json()
    assert (said["code"], said["status"], said.get("field")) == (code, status, field)
    assert {"type", "title", "detail"} <= said.keys()
    assert "Traceback" not in response.text
    return said


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/plans", {"text": "x"}, "scope"),
        ("/v1/plans", {"scope": "../x", "text": "x"}, "scope"),
        ("/v1/plans", {"scope": "s", "text": "x", "nope": 1}, "nope"),
        ("/v1/plans", {"scope": "s", "text": "x", "self": 1}, "self"),
        ("/v1/plans", {"scope": "s", "text": "x", "k": "64"}, "k"),
        ("/v1/plans", {"scope": "s", "text": "x", "k": 100_000}, "k"),
        ("/v1/plans", {"scope": "s", "text": "x\0"}, "request"),
        ("/v1/plans", {"scope": "s", "text": "x", "unit": "auto"}, "unit"),
        ("/v1/plans", {"scope": "s", "text": "x", "window": {"from": "yesterday"}}, "window.from"),
        ("/v1/context", {"scope": "s", "text": "x", "unit": "page"}, "unit"),
        ("/v1/context", {"scope": "s", "text": "x", "neighbours": None}, "neighbours"),
        ("/v1/context", {"scope": "s", "text": "x", "nope": 1}, "nope"),
        ("/v1/citations/verify", {"quote": "x", "evidence": "E1"}, "plan"),
        ("/v1/citations/verify", {"plan": 1, "quote": "x", "evidence": "E1"}, "plan"),
        ("/v1/scopes/s/sources", {"id": "", "text": "x"}, "id"),
        ("/v1/scopes/s/sources", {"id": "a", "text": "x", "trust": "full"}, "trust"),
        ("/v1/scopes/s/sources", {"id": "a", "text": "x", "attributes": []}, "attributes"),
        ("/v1/scopes/s/sources", {"id": "a", "text": "x", "observed_at": "2026-01-31"}, "observed_at"),
        ("/v1/scopes/s/sources/a/append", {"messages": []}, "messages"),
        ("/v1/scopes/s/sources/a/append", {"messages": ["x"]}, "messages.0"),
        ("/v1/scopes/a b/sources", {"id": "a", "text": "x"}, "scope"),
    ],
)
def test_a_bad_field_is_named(http: TestClient, path: str, body: dict[str, Any], field: str) -> None:
    refused(http.post(path, json=body), 422, "request.invalid", field)


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("/v1/plans", "scope"),
        ("/v1/plans?scope=s&nope=1", "nope"),
        ("/v1/plans?scope=s&limit=0", "limit"),
        ("/v1/plans?scope=s&limit=201", "limit"),
        ("/v1/plans?scope=s&limit=x", "limit"),
        ("/v1/plans?scope=s&outcome=lost", "outcome"),
        ("/v1/plans?scope=s&since=2026-01-31", "since"),
        ("/v1/plans?scope=s&after=x", "after"),
        ("/v1/scopes/s/sources?limit=201", "limit"),
        ("/v1/scopes/s/sources?after=%00", "after"),
        ("/v1/scopes/s/sources/%00", "source"),
        ("/v1/plans/s:00000000-0000-7000-8000-000000000000/why", "what"),
        ("/v1/plans/s:00000000-0000-7000-8000-000000000000?include=all", "include"),
    ],
)
def test_a_bad_parameter_is_named(http: TestClient, url: str, field: str) -> None:
    refused(http.get(url), 422, "request.invalid", field)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"scope": NaN}', "NaN"),
        (b"\xff", "UTF-8"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_object_is_refused(http: TestClient, body: bytes, said: str) -> None:
    answer = http.post("/v1/plans", content=body, headers=JSON)
    assert said in refused(answer, 400, "http.not_json", "body")["detail"]


def test_what_is_nested_beyond_reading_is_refused(http: TestClient, scope: str) -> None:
    for depth in (20, 200, 900, 990, 2_000):
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        body = b'{"id": "deep.md", "text": "x", "attributes": ' + nested + b"}"
        answer = http.post(f"/v1/scopes/{scope}/sources", content=body, headers=JSON)
        assert answer.status_code in (200, 400, 422), (depth, answer.text)


def test_what_is_not_there_says_so(http: TestClient, planner: Planner, scope: str) -> None:
    nobody = "00000000-0000-7000-8000-000000000000"
    refused(http.post("/v1/plans", json={"scope": "nowhere", "text": "x"}), 404, "not_found.scope")
    refused(http.get("/v1/plans?scope=nowhere"), 404, "not_found.scope")
    refused(http.get(f"/v1/plans/{scope}:{nobody}"), 404, "not_found.plan")
    refused(http.get(f"/v1/scopes/{scope}/sources/nothing"), 404, "not_found.source")
    refused(http.delete(f"/v1/scopes/{scope}/sources/nothing"), 404, "not_found.source")
    refused(http.get(f"/v1/plans/{scope}"), 422, "request.invalid")
    for path in ("/", "/v2/plans", "/v1/plans/", "/v1/scopes", "/docs"):
        refused(http.get(path), 404, "http.no_route")


def test_a_method_that_a_path_does_not_take_names_those_it_takes(http: TestClient) -> None:
    for path, methods in (("/v1/plans", "GET, POST"), ("/v1/scopes/s/sources/a/b", "DELETE, GET")):
        for method in ("PUT", "PATCH", "OPTIONS", "TRACE"):
            answer = http.request(method, path)
            refused(answer, 405, "http.method")
            assert answer.headers["allow"] == methods


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]
)
def test_a_body_of_another_sort_is_refused(http: TestClient, kind: str | None) -> None:
    headers = {"Content-Type": kind} if kind else {}
    refused(http.post("/v1/plans", content=b"{}", headers=headers), 415, "http.media_type")


def test_a_body_may_have_so_many_bytes(planner: Planner, scope: str) -> None:
    planner = with_settings(planner, max_body_bytes=1_000)
    body = json.dumps({"id": "a.md", "text": "x" * 10}).encode()
    exact = body + b" " * (1_000 - len(body))
    with client(planner) as http:
        at = f"/v1/scopes/{scope}/sources"
        assert http.post(at, content=exact, headers=JSON).status_code == 200
        assert http.post(at, content=iter([exact[:500], exact[500:]]), headers=JSON).status_code == 200
        refused(http.post(at, content=exact + b" ", headers=JSON), 413, "http.too_large")
        refused(http.post(at, content=iter([exact, b" "]), headers=JSON), 413, "http.too_large")


def test_what_ingest_refuses_is_a_problem_and_writes_nothing(
    http: TestClient, scope: str, conn: Connection
) -> None:
    at, before = f"/v1/scopes/{scope}/sources", rows_of(conn, scope)
    for body, status, code in (
        ({"id": "a.md", "text": " \n"}, 422, "ingest.empty"),
        ({"id": "a.jsonl", "text": "{}", "media_type": IMPORT}, 422, "ingest.malformed"),
        ({"id": "a", "text": "x", "media_type": "image/png"}, 415, "ingest.unsupported"),
    ):
        answer = http.post(at, json=body)
        assert answer.status_code == status, answer.text
        assert answer.json()["code"] == code
    assert rows_of(conn, scope) == before


def test_a_refused_plan_names_its_trace_and_a_budget_that_suffices(
    http: TestClient, planner: Planner, scope: str
) -> None:
    with pytest.raises(InsufficientEvidence) as raised:
        planner.plan(scope, "at 0", budget_tokens=1)
    said = refused(
        http.post("/v1/plans", json={"scope": scope, "text": "at 0", "budget_tokens": 1}),
        422,
        "evidence.insufficient",
    )
    assert (said["reason"], said["sufficient_budget"]) == ("nothing_fits", raised.value.sufficient_budget)
    assert planner.load(said["plan"]).outcome == "refused"
    refused_plan = http.get(f"/v1/plans/{said['plan']}").json()
    assert refused_plan["error"]["code"] == "evidence.insufficient"


@pytest.mark.parametrize("asked", ["0", "-1", "x", "1.5", "30001", "9" * 30, ""])
def test_a_deadline_is_whole_milliseconds_within_the_operator_s(http: TestClient, asked: str) -> None:
    answer = http.get("/v1/plans?scope=s", headers={"X-Deadline-Ms": asked})
    refused(answer, 422, "request.invalid", "X-Deadline-Ms")


def test_every_answer_has_the_headers_that_keep_browsers_out(http: TestClient, scope: str) -> None:
    for answer in (
        http.get("/livez"),
        http.get(f"/v1/plans?scope={scope}"),
        http.get("/nowhere"),
        http.get("/v1/plans?scope=%20"),
        http.get("/livez", headers={"Host": "planner.example"}),
    ):
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["x-request-id"]
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8000", 200),
        ("LOCALHOST:8000", 200),
        ("127.0.0.1", 200),
        ("127.1.2.3:8000", 200),
        ("[::1]:8000", 200),
        ("planner.example", 421),
        ("localhost.planner.example", 421),
        ("127.0.0.1.planner.example", 421),
        ("10.0.0.1", 421),
        ("0.0.0.0", 421),
        ("localhost@planner.example", 421),
        ("[", 421),
        ("", 421),
    ],
)
def test_without_tokens_only_loopback_names_are_answered(http: TestClient, host: str, status: int) -> None:
    assert http.get("/livez", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost", 200),
        ("http://localhost:3000", 403),
        ("https://planner.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_without_tokens_no_page_of_another_origin_is_answered(
    http: TestClient, origin: str, status: int
) -> None:
    assert http.get("/livez", headers={"Origin": origin}).status_code == status


def test_pages_of_configured_origins_may_call(planner: Planner, scope: str) -> None:
    page = "https://notes.example"
    with client(with_settings(planner, cors_origins=(page,))) as http:
        asked = {"Origin": page, "Access-Control-Request-Method": "POST"}
        before = http.options(
            "/v1/plans", headers={**asked, "Access-Control-Request-Headers": "Authorization"}
        )
        assert before.status_code == 200
        assert before.headers["access-control-allow-origin"] == page
        assert http.get("/livez", headers={"Origin": page}).headers["access-control-allow-origin"] == page
        other = http.get("/livez", headers={"Origin": "https://other.example"})
        assert other.status_code == 403
        assert "access-control-allow-origin" not in other.headers


def with_settings(planner: Planner, **values: Any) -> Planner:
    """Return a planner on the same store under other settings."""
    return Planner(replace(planner.engine, settings=Settings(**values)))
