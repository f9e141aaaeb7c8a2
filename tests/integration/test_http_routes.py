"""Each route answers with the library's own data, and as /openapi.json says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import BaseModel
from starlette.testclient import TestClient

from planner import Planner
from planner.errors import UnknownSource
from planner.surfaces.http import answers
from planner.surfaces.http.answers import Problem
from tests.http_service import client, routes_of, without_times
from tests.integration.graph import ask

TEXT = "# Gate\n\nThe storm gate closes at 20\n\nIt opens again at 40\n"
QUESTION = {"text": "When does the gate close at 20", "budget_tokens": 200}


@pytest.fixture
def http(planner: Planner, scope: str) -> Iterator[TestClient]:
    """Give a client of a service whose scope holds a document and a conversation."""
    planner.ingest_text(scope, "docs/gate.md", TEXT, attributes={"team": "harbour"})
    planner.append(scope, "talk", [{"content": "Is it closed at 30", "role": "user", "id": "m1"}])
    with client(planner) as opened:
        yield opened


def said(response: Any, model: type[BaseModel]) -> dict[str, Any]:
    """Return an answer that has all the fields of its model and no other, at every depth."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = response.json()
    assert differing(model, found) == []
    return found


def differing(model: type[BaseModel], found: dict[str, Any]) -> list[str]:
    """Return the fields of an answer that its model does not know; one that it lacks does not load."""
    loaded = model.model_validate_json(json.dumps(found))
    return unknown(loaded.model_dump(mode="json", by_alias=True, exclude_unset=True), found, model.__name__)


def unknown(kept: Any, found: Any, path: str) -> list[str]:
    if isinstance(found, dict):
        here = [f"{path}.{name}" for name in found.keys() - kept.keys()]
        return here + [x for name in kept for x in unknown(kept[name], found[name], f"{path}.{name}")]
    if isinstance(found, list):
        return [x for a, b in zip(kept, found, strict=True) for x in unknown(a, b, path)]
    return []


def of_library(value: Any) -> Any:
    """Return what the library says as JSON reads it back."""
    return json.loads(json.dumps(value.to_dict()))


def test_plans_are_made_listed_and_read(http: TestClient, planner: Planner, scope: str) -> None:
    made = said(http.post("/v1/plans", json={"scope": scope, **QUESTION}), answers.PlanAnswer)
    assert made["spans"]
    assert "rejected" not in made
    stored = planner.load(made["plan"])
    read = said(http.get(f"/v1/plans/{made['plan']}"), answers.PlanAnswer)
    assert without_times(read) == without_times(made) == without_times(stored.to_dict(rejected=False))
    whole = said(http.get(f"/v1/plans/{made['plan']}?include=rejected"), answers.PlanAnswer)
    assert whole == of_library(stored)
    page = said(http.get("/v1/plans", params={"scope": scope, "text": "GATE"}), answers.PlanPageAnswer)
    assert page == of_library(planner.plans(scope))
    assert [line["plan"] for line in page["plans"]] == [made["plan"]]


def test_plans_are_listed_a_page_at_a_time(http: TestClient, planner: Planner, scope: str) -> None:
    made = [str(ask(planner, scope).ref) for _ in range(3)]
    found: list[str] = []
    after: str | None = None
    while True:
        params = {"scope": scope, "limit": 2, **({"after": after} if after else {})}
        page = said(http.get("/v1/plans", params=params), answers.PlanPageAnswer)
        found += [line["plan"] for line in page["plans"]]
        after = page["next_after"]
        if after is None:
            break
    assert found == made[::-1]


def test_plans_are_explained(http: TestClient, planner: Planner, scope: str) -> None:
    a, b = (str(ask(planner, scope, text="gate at 20", budget_tokens=n).ref) for n in (8, 200))
    why = http.get(f"/v1/plans/{a}/why", params={"what": "docs/gate.md"})
    assert said(why, answers.WhyAnswer) == of_library(planner.why(a, "docs/gate.md"))
    assert said(http.post(f"/v1/plans/{a}/replay"), answers.ReplayAnswer) == of_library(planner.replay(a))
    assert said(http.get(f"/v1/plans/{a}/diff/{b}"), answers.DiffAnswer) == of_library(planner.diff(a, b))
    again = said(http.post(f"/v1/plans/{a}/replan", json={}), answers.ReplanningAnswer)
    assert (again["identical"], again["again"]) == (True, None)
    kept = said(http.post(f"/v1/plans/{a}/replan", json={"keep": True}), answers.ReplanningAnswer)
    assert planner.load(kept["again"]).plan_hash == planner.load(a).plan_hash


def test_evidence_is_delivered_and_quotes_are_held_against_it(
    http: TestClient, planner: Planner, scope: str
) -> None:
    plan = str(ask(planner, scope, text="gate at 20").ref)
    made = said(
        http.post(f"/v1/plans/{plan}/deliveries", json={"unit": "window", "budget_tokens": 300}),
        answers.DeliveryAnswer,
    )
    assert made["delivery_hash"] == planner.deliver(plan, "window", budget_tokens=300).delivery_hash
    assert made["delivery_id"] in {record.delivery_id for record in planner.deliveries(plan)}
    whole = {"scope": scope, **QUESTION, "unit": "auto", "neighbours": 2}
    asked = said(http.post("/v1/context", json=whole), answers.DeliveryAnswer)
    assert asked["used"] <= asked["budget"] == 200
    assert planner.load(asked["plan"]).request["text"] == QUESTION["text"]
    cited = {"plan": plan, "quote": "storm gate", "evidence": "docs/gate.md@1:8-35"}
    found = said(http.post("/v1/citations/verify", json=cited), answers.CitationAnswer)
    assert found == of_library(planner.verify_citation(plan, "storm gate", "docs/gate.md@1:8-35"))


def test_sources_are_written_described_and_erased(http: TestClient, planner: Planner, scope: str) -> None:
    here = f"/v1/scopes/{scope}/sources"
    body = {
        "id": "notes/ä ö?#.md",
        "text": "A note at 50.",
        "title": "Note",
        "trust": "internal",
        "class": "truth",
        "observed_at": "2026-01-31T00:00:00Z",
        "attributes": {"a": [1, None]},
    }
    made = said(http.post(here, json=body), answers.IngestAnswer)
    assert made["sources"][0]["status"] == "new"
    assert said(http.post(here, json=body), answers.IngestAnswer)["counts"] == {}
    at = f"{here}/{quote(str(body['id']))}"
    assert said(http.get(at), answers.SourceAnswer) == of_library(planner.source(scope, str(body["id"])))
    page = said(http.get(here, params={"limit": 1}), answers.SourcePageAnswer)
    assert page == of_library(planner.sources(scope, limit=1))
    rest = said(http.get(here, params={"after": page["next_after"]}), answers.SourcePageAnswer)
    assert [source["source_id"] for source in rest["sources"]] == [body["id"], "talk"]
    gone = said(http.delete(at), answers.ErasedAnswer)
    assert gone["sources"] == [body["id"]]
    assert planner.source(scope, str(body["id"])).erased


def test_turns_are_appended_and_a_key_is_one_write(http: TestClient, planner: Planner, scope: str) -> None:
    at = f"/v1/scopes/{scope}/sources/talk/append"
    turns = {"messages": [{"content": "Not yet at 40"}]}
    keyed = {"Idempotency-Key": "turn-2"}
    done = [said(http.post(at, json=turns, headers=keyed), answers.IngestAnswer) for _ in range(2)]
    assert [one["sources"][0]["status"] for one in done] == ["changed", "unchanged"]
    assert len(planner.source(scope, "talk").spans) == 2
    other = http.post(at, json={"messages": [{"content": "Yet at 40"}]}, headers=keyed)
    assert (other.status_code, other.json()["code"]) == (409, "ingest.conflict")
    with pytest.raises(UnknownSource):
        planner.source(scope, "talk/append")


def test_every_route_is_described_with_its_body_its_answer_and_its_problems(http: TestClient) -> None:
    described = http.get("/openapi.json").json()
    assert described["openapi"].startswith("3.")
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            assert "200" in operation["responses"]
            if path.startswith("/v1/"):
                assert operation["description"]
                assert {"401", "403", "404", "422", "503", "504"} <= operation["responses"].keys()
                assert operation["responses"]["422"]["content"].keys() == {"application/problem+json"}
            takes_body = "requestBody" in operation
            if method != "get" or "metrics" not in path:
                assert operation["responses"]["200"]["content"]["application/json"]["example"]
            for status, response in operation["responses"].items():
                for kind, content in response["content"].items():
                    if kind == "application/problem+json":
                        assert Problem(**content["example"]).status == int(status)
            assert takes_body == ({"400", "408", "413", "415"} <= operation["responses"].keys())
    assert len(routes_of(http.app)) == 18
    assert [path for path in ("/docs", "/redoc") if http.get(path).status_code != 404] == []
