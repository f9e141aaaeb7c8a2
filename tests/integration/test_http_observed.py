"""What the service says of itself: a line and an id a request, counts, and never what was sent."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from planner import Planner, Settings
from planner.embedders import CallableEmbedder
from planner.granting import PERMISSIONS
from planner.surfaces.http import logs
from tests.http_service import client
from tests.integration.graph import MODEL, circle_embedder, fan

Log = Callable[[], list[dict[str, Any]]]

SECRET = "the-harbour-secret"


@pytest.fixture
def log() -> Iterator[Log]:
    """Give a function that returns what has been logged, and put logging back as it was at the end."""
    loggers = [logging.getLogger(), logging.getLogger("planner")]
    before = [(logger, logger.handlers[:], logger.level) for logger in loggers]
    stream = io.StringIO()
    logs.configure(as_json=True, stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    for logger, handlers, level in before:
        logger.handlers[:], logger.level = handlers, level


@pytest.fixture
def http(planner: Planner, scope: str) -> Iterator[TestClient]:
    fan(0, 30).into(planner, scope)
    with client(planner) as opened:
        yield opened


def test_a_request_is_one_line_with_its_route_and_its_plan(http: TestClient, scope: str, log: Log) -> None:
    made = http.post("/v1/plans", json={"scope": scope, "text": "at 0"})
    refused = http.post("/v1/plans", json={"scope": scope, "text": "at 0", "budget_tokens": 1})
    http.get(f"/v1/plans/{made.json()['plan']}")
    http.get(f"/v1/scopes/{scope}/sources/{SECRET}")
    http.get(f"/{SECRET}")
    lines = [
        {name: line.get(name) for name in ("event", "method", "route", "status", "plan", "code")}
        for line in log()
    ]
    plan, traced = made.json()["plan"], refused.json()["plan"]
    assert [tuple(line.values()) for line in lines] == [
        ("request", "POST", "/v1/plans", 200, plan, None),
        ("request", "POST", "/v1/plans", 422, traced, "evidence.insufficient"),
        ("request", "GET", "/v1/plans/{plan}", 200, plan, None),
        ("request", "GET", "/v1/scopes/{scope}/sources/{source:path}", 404, None, "not_found.source"),
        ("request", "GET", "unmatched", 404, None, "http.no_route"),
    ]
    assert all(line["ms"] >= 0 for line in log())


@pytest.mark.parametrize("given", ["req-1", "A.b_c-9", "x" * 64])
def test_a_sane_id_is_kept(http: TestClient, log: Log, given: str) -> None:
    assert http.get("/livez", headers={"X-Request-Id": given}).headers["x-request-id"] == given
    assert log()[-1]["request_id"] == given


@pytest.mark.parametrize("given", ["", " ", "a b", "-x", "x" * 65, 'a"b', "a;b", "<b>"])
def test_any_other_is_replaced(http: TestClient, log: Log, given: str) -> None:
    found = http.get("/livez", headers={"X-Request-Id": given}).headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{16}", found)
    assert log()[-1]["request_id"] == found


def test_nothing_that_was_sent_is_logged(planner: Planner, scope: str, log: Log) -> None:
    fan(0).into(planner, scope)
    text = planner.create_token(scope, label=SECRET, permissions=PERMISSIONS).text
    with client(planner, tokens=True, Authorization=f"Bearer {text}") as http:
        at = f"/v1/scopes/{scope}/sources"
        sent = {"id": SECRET, "text": f"{SECRET} at 10", "title": SECRET, "attributes": {SECRET: SECRET}}
        assert http.post(at, json=sent, headers={"Idempotency-Key": SECRET}).status_code == 200
        made = http.post("/v1/plans", json={"scope": scope, "text": f"{SECRET} at 10"}).json()
        http.post("/v1/plans", json={"scope": scope, "text": 1, SECRET: SECRET})
        http.post("/v1/plans", content=f'{{"{SECRET}', headers={"Content-Type": "application/json"})
        http.get(f"/v1/plans/{made['plan']}/why", params={"what": SECRET})
        cited = {"plan": made["plan"], "quote": SECRET, "evidence": "E1"}
        http.post("/v1/citations/verify", json=cited)
        http.get(f"{at}/{SECRET}")
        http.get(at, params={SECRET: SECRET})
        http.get("/v1/plans", headers={"Authorization": f"Bearer {SECRET}"})
        http.delete(f"{at}/{SECRET}")
    assert len(log()) == 10
    said = json.dumps(log())
    assert SECRET not in said
    assert text.rpartition(".")[2] not in said


def test_what_nobody_foresaw_is_a_problem_and_logged_without_its_message(
    planner: Planner, scope: str, log: Log
) -> None:
    def breaks(texts: list[str]) -> Any:
        raise LookupError(f"{SECRET}: {texts}")

    fan(0).into(planner, scope)
    broken = replace(planner.engine, embedder=lambda: breaks([SECRET]))
    with client(Planner(broken)) as http:
        answer = http.post("/v1/plans", json={"scope": scope, "text": SECRET})
    assert (answer.status_code, answer.json()["code"]) == (500, "planner.error")
    assert SECRET not in answer.text
    failure, request = log()
    assert (failure["event"], failure["error"], failure["request_id"]) == (
        "failed",
        "LookupError",
        answer.headers["x-request-id"],
    )
    assert any("breaks" in line for line in failure["where"])
    assert request["status"] == 500
    assert SECRET not in json.dumps([failure, request])


def test_a_traceback_of_another_library_is_logged_without_its_message(log: Log) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
    (line,) = log()
    assert (line["event"], line["error"]) == ("Exception in ASGI application", "ValueError")
    assert SECRET not in json.dumps(line)


def test_a_terminal_gets_lines_for_people(log: Log) -> None:
    stream = io.StringIO()
    logs.configure(as_json=False, stream=stream)
    logs.log.info("serving", url="http://127.0.0.1:8000")
    assert "serving" in stream.getvalue()
    assert "url=http://127.0.0.1:8000" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def metric(http: TestClient, name: str) -> float:
    (found,) = [line for line in http.get("/metrics").text.splitlines() if line.startswith(name + " ")]
    return float(found.rpartition(" ")[2])


def test_plans_are_counted_by_outcome_with_their_stages_and_budgets(http: TestClient, scope: str) -> None:
    question = {"scope": scope, "text": "at 0", "budget_tokens": 100}
    for body in (question, {**question, "budget_tokens": 1}, {**question, "k": 10**6}):
        http.post("/v1/plans", json=body)
    http.post("/v1/context", json=question)
    http.post("/v1/plans", json={"scope": "nowhere", "text": "at 0"})
    assert metric(http, 'planner_plans_total{outcome="planned"}') == 2
    assert metric(http, 'planner_plans_total{outcome="refused"}') == 1
    assert metric(http, 'planner_plans_total{outcome="failed"}') == 0
    assert metric(http, 'planner_stage_seconds_count{stage="recall"}') == 3
    assert metric(http, "planner_budget_utilisation_count") == 2
    assert metric(http, "planner_budget_stranded_tokens_count") == 2
    route = 'planner_http_requests_total{method="POST",route="/v1/plans",status="%s"}'
    assert [metric(http, route % status) for status in (200, 404, 422)] == [1, 1, 2]
    assert metric(http, 'planner_http_request_seconds_count{route="/v1/plans"}') == 4
    assert metric(http, "planner_http_in_flight") == 1


def test_an_index_that_returns_too_little_is_counted(database_url: str) -> None:
    embedder = CallableEmbedder(MODEL, 2, circle_embedder().function)
    with Planner.connect(database_url, settings=Settings(exact_limit=0), embedder=embedder) as planner:
        fan(*range(10)).into(planner, "s")
        planner.build_index("s")
        with client(planner) as http:
            made = http.post("/v1/plans", json={"scope": "s", "text": "at 0"}).json()
            assert made["recall"]["method"] == "ann"
            assert metric(http, "planner_ann_underfilled_total") == made["recall"]["semantic"]["underfilled"]


def test_an_invented_method_does_not_grow_the_counts(http: TestClient) -> None:
    for i in range(5):
        assert http.request(f"METHOD{i}", "/livez").status_code == 405
    assert metric(http, 'planner_http_requests_total{method="other",route="/livez",status="405"}') == 5
