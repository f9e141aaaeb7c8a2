"""The description of the routes, which /openapi.json says: bodies, answers, problems, examples, tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from planner.surfaces.http.answers import Problem
from planner.surfaces.http.limits import DEADLINE
from planner.surfaces.http.problems import PROBLEM, STATUS, example

PlanPath = Annotated[str, Path(max_length=128, description="A plan, as <scope>:<plan_id>")]
ScopePath = Annotated[str, Path(max_length=63, description="The scope's name")]
SourcePath = Annotated[str, Path(description="The source's id; its slashes are part of the path")]

COMPONENTS = "#/components/schemas/{model}"

EVERYWHERE = (401, 403, 404, 421, 422, 500, 503, 504)
"""What any route of /v1 may answer with: who asks, for what, and what the store says to it."""

WITH_BODY = (400, 408, 413, 415)
"""What a route that takes a body may answer with besides."""

ABOUT = """
Decides which evidence a language model reads, within a budget of tokens, and can say why.

Errors are problems (RFC 9457) with a stable `code`. Unknown fields and parameters are refused; a request may
lower the operator's limits, never raise them. `X-Deadline-Ms` shortens the time that a request is given,
`X-Request-Id` names it in the log. The scopes of a token's reach are one: any other is not there.
"""

_BODIES: dict[str, type[BaseModel]] = {}


def router(about: str) -> APIRouter:
    """Return a router whose operations are called as their functions are."""
    return APIRouter(tags=[about], generate_unique_id_function=lambda route: route.name)


def described(
    answer: type[BaseModel], *, body: type[BaseModel] | None = None, errors: Sequence[int] = ()
) -> dict[str, Any]:
    """Return what a route says of itself: its answer, the body that it takes, further statuses."""
    extra: dict[str, Any] = {"parameters": [_deadline()]}
    if body is not None:
        _BODIES[body.__name__] = body
        schema = {"$ref": COMPONENTS.format(model=body.__name__)}
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    statuses = sorted({*EVERYWHERE, *errors, *(WITH_BODY if body is not None else ())})
    return {
        "response_model": None,
        "responses": {200: {"model": answer}, **{status: _problem(status) for status in statuses}},
        "openapi_extra": extra,
    }


def describe(app: FastAPI, *, tokens: bool) -> dict[str, Any]:
    """Return the description of an application, made once."""
    if app.openapi_schema is None:
        said = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
        models: list[type[BaseModel]] = [Problem, *_BODIES.values()]
        _, bodies = models_json_schema([(model, "validation") for model in models], ref_template=COMPONENTS)
        said["components"]["schemas"] |= bodies["$defs"]
        if tokens:
            said["components"]["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer", "description": "<scope>.<secret>"}
            }
        for path, operations in said["paths"].items():
            for operation in operations.values():
                if tokens and path.startswith("/v1/"):
                    operation["security"] = [{"token": []}]
                _exemplify(operation, _examples().get(operation["operationId"], {}))
        app.openapi_schema = said
    return app.openapi_schema


def _problem(status: int) -> dict[str, Any]:
    codes = [code for code, its in STATUS.items() if its == status]
    schema = {"$ref": COMPONENTS.format(model=Problem.__name__)}
    content = {PROBLEM: {"schema": schema, "example": example(status)}}
    return {"description": ", ".join(f"`{code}`" for code in codes), "content": content}


def _deadline() -> dict[str, Any]:
    return {
        "name": DEADLINE,
        "in": "header",
        "required": False,
        "description": "Milliseconds until the answer must be there; at most the operator's deadline_ms",
        "schema": {"type": "integer", "minimum": 1},
    }


@cache
def _examples() -> Mapping[str, Mapping[str, Any]]:
    """Return by operation what was once asked and answered; a test asks it again."""
    recorded = files(__package__ or __name__).joinpath("examples.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = json.loads(recorded)
    return found


def _exemplify(operation: dict[str, Any], example: Mapping[str, Any]) -> None:
    if "request" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["request"]
    if "answer" in example:
        operation["responses"]["200"]["content"]["application/json"]["example"] = example["answer"]
