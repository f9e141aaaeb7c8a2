"""schemathesis: requests made from /openapi.json, valid and not, are answered as it says, and never with 500.

Once as described; once narrowed to a scope, a plan and a source that are there, so that requests get past
their paths.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, reject, settings, strategies
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from planner import Planner, Settings
from planner.surfaces.http.app import create_app
from planner.surfaces.http.limits import DEADLINE
from planner.surfaces.http.routes.sources import IDEMPOTENCY_KEY
from tests.http_service import listener
from tests.integration.graph import circle_embedder, fan

SCOPE = "s"
EXAMPLES = 8


@pytest.fixture(scope="module")
def base(module_database_url: str) -> Iterator[str]:
    with Planner.connect(module_database_url, settings=Settings(), embedder=circle_embedder()) as planner:
        fan(0, 30).into(planner, SCOPE)
        planner.append(SCOPE, "talk", [{"content": "Hello at 0"}])
        with listener(create_app(planner, tokens=False)) as url:
            yield url


UNHELD = [positive_data_acceptance]
"""A description cannot say that a question asks something, what a scope holds, which limits there are."""


BEYOND = frozenset({"embedding", "model", "counter", "as_of", "k", "roots", "fanout", "hops", "profile"})
"""Fields of a question that few values suit: dimensions, names, what the ledger and the operator allow."""


def hurried(operation: dict[str, Any]) -> dict[str, Any]:
    """Return an operation without its deadline: a millisecond may be asked for, and 504 is right then."""
    kept = [parameter for parameter in operation.get("parameters", ()) if parameter["name"] != DEADLINE]
    return {**operation, "parameters": kept}


@strategies.composite
def drawn(draw: strategies.DrawFn, cases: strategies.SearchStrategy[Any]) -> Any:
    """Draw a case; what the generator could not make, since it recursed too deep, is none."""
    try:
        return draw(cases)
    except RecursionError:
        reject()


def narrowed(described: dict[str, Any], plan: str) -> dict[str, Any]:
    """Return the description with a scope, a plan and sources that are there wherever one is asked for.

    Without keys for repeating a write: the same one for several bodies is a conflict.
    """
    said = copy.deepcopy(described)
    there = {"scope": [SCOPE], "plan": [plan], "other": [plan], "source": ["talk", "n0.txt"]}
    for operations in said["paths"].values():
        for operation in operations.values():
            operation["parameters"] = [p for p in operation["parameters"] if p["name"] != IDEMPOTENCY_KEY]
            for parameter in operation["parameters"]:
                if parameter["name"] in there:
                    parameter["schema"] = {"type": "string", "enum": there[parameter["name"]]}
    for model in ("PlanRequest", "ContextBody", "CitationBody"):
        properties = said["components"]["schemas"][model]["properties"]
        for name in properties.keys() & {"scope", "plan"}:
            properties[name] = {"type": "string", "enum": there[name]}
    for model in ("PlanRequest", "ContextBody", "DeliverRequest"):
        properties = said["components"]["schemas"][model]["properties"]
        for name in properties.keys() & BEYOND:
            del properties[name]
    for model in ("PlanRequest", "ContextBody"):
        said["components"]["schemas"][model]["required"] = ["scope", "text"]
    turn = {"type": "object", "required": ["content"], "properties": {"content": {"const": "Hello at 0"}}}
    said["components"]["schemas"]["AppendBody"]["properties"]["messages"]["items"] = turn
    return said


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("narrow", [False, True], ids=["described", "narrowed"])
def test_what_is_asked_by_the_description_is_answered_by_it(
    base: str, narrow: bool, mode: GenerationMode
) -> None:
    described = httpx.get(f"{base}/openapi.json").json()
    for path, operations in described["paths"].items():
        described["paths"][path] = {method: hurried(found) for method, found in operations.items()}
    if narrow:
        plan = httpx.post(f"{base}/v1/plans", json={"scope": SCOPE, "text": "at 0"}).json()["plan"]
        described = narrowed(described, plan)
    schema = schemathesis.openapi.from_dict(described)
    schema.config.update(base_url=base)
    unheld = [*UNHELD, negative_data_rejection] if narrow else UNHELD  # another scope is no wrong one
    asked: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and not operation.path.startswith("/v1/"):
            continue  # what takes nothing can be sent nothing wrong

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=drawn(operation.as_strategy(generation_mode=mode)))
        def ask(case: Any) -> None:
            answer = case.call_and_validate(excluded_checks=unheld)
            asked.setdefault(case.operation.label, set()).add(answer.status_code)

        ask()
    if narrow and mode is GenerationMode.POSITIVE:
        assert [label for label, statuses in asked.items() if 200 not in statuses] == []
