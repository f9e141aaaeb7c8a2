"""Plans: made, listed, read, explained."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response

from planner.request import PlanRequest
from planner.surfaces.http.answers import (
    DiffAnswer,
    PlanAnswer,
    PlanPageAnswer,
    ReplanningAnswer,
    ReplayAnswer,
    WhyAnswer,
)
from planner.surfaces.http.bodies import ReplanBody
from planner.surfaces.http.entry import Inspecting, Reading
from planner.surfaces.http.openapi import PlanPath, described, router
from planner.surfaces.http.queries import NoQuery, PlanQuery, PlansQuery, WhyQuery
from planner.surfaces.http.service import fields_of

routes = router("plans")


@routes.post("/v1/plans", **described(PlanAnswer, body=PlanRequest, errors=(502,)))
async def make_plan(exchange: Reading, query: Annotated[NoQuery, Query()]) -> Response:
    """Plan the evidence for a question within a budget of tokens, and keep the plan.

    The answer has what is selected; `GET /v1/plans/{plan}?include=rejected` has the rest.
    """
    body, planner = await exchange.body(), exchange.service.planner

    def work() -> dict[str, object]:
        request = PlanRequest.parse(fields_of(body))
        exchange.access.scope(request.scope)
        return planner.plan(request).to_dict(rejected=False)

    return await exchange.answer(work)


@routes.get("/v1/plans", **described(PlanPageAnswer))
async def list_plans(exchange: Inspecting, query: Annotated[PlansQuery, Query()]) -> Response:
    """List the plans of a scope, newest first, a page at a time."""
    scope, planner = exchange.access.scope(query.scope), exchange.service.planner
    limit = exchange.service.limits.page(query.limit)
    wanted = {**query.model_dump(exclude={"scope", "limit"}), "limit": limit}
    return await exchange.answer(lambda: planner.plans(scope, **wanted).to_dict())


@routes.get("/v1/plans/{plan}", **described(PlanAnswer))
async def read_plan(exchange: Reading, plan: PlanPath, query: Annotated[PlanQuery, Query()]) -> Response:
    """Read a stored plan; with `include=rejected`, which asks for `inspect`, its whole pool."""
    has_rejected = query.include == "rejected"
    if has_rejected:
        exchange.access.require("inspect")
    ref, planner = exchange.access.plan(plan), exchange.service.planner
    return await exchange.answer(lambda: planner.load(ref).to_dict(rejected=has_rejected))


@routes.get("/v1/plans/{plan}/why", **described(WhyAnswer))
async def why(exchange: Inspecting, plan: PlanPath, query: Annotated[WhyQuery, Query()]) -> Response:
    """Say at which stage of a plan a span, a node, a source or a phrase fell, or that it was selected."""
    ref, planner = exchange.access.plan(plan), exchange.service.planner
    return await exchange.answer(lambda: planner.why(ref, query.what).to_dict())


@routes.post("/v1/plans/{plan}/replay", **described(ReplayAnswer))
async def replay(exchange: Inspecting, plan: PlanPath, query: Annotated[NoQuery, Query()]) -> Response:
    """Decide a stored plan again from its candidates; it must come out the same."""
    ref, planner = exchange.access.plan(plan), exchange.service.planner
    return await exchange.answer(lambda: planner.replay(ref).to_dict())


@routes.post("/v1/plans/{plan}/replan", **described(ReplanningAnswer, body=ReplanBody, errors=(502,)))
async def replan(exchange: Inspecting, plan: PlanPath, query: Annotated[NoQuery, Query()]) -> Response:
    """Make a stored plan again as of its transaction: the same hashes, or what drifted."""
    body = await exchange.body()
    ref, planner = exchange.access.plan(plan), exchange.service.planner
    return await exchange.answer(
        lambda: planner.replan(ref, keep=ReplanBody(**fields_of(body)).keep).to_dict()
    )


@routes.get("/v1/plans/{plan}/diff/{other}", **described(DiffAnswer))
async def diff(
    exchange: Inspecting, plan: PlanPath, other: PlanPath, query: Annotated[NoQuery, Query()]
) -> Response:
    """Say what entered, left or moved from one plan to another of its scope, and why."""
    a, b, planner = exchange.access.plan(plan), exchange.access.plan(other), exchange.service.planner
    return await exchange.answer(lambda: planner.diff(a, b).to_dict())
