"""What a model reads: a plan's evidence, a question's in one step, and whether a quote is in it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response

from planner.request import DeliverRequest, PlanRequest
from planner.surfaces.http.answers import CitationAnswer, DeliveryAnswer
from planner.surfaces.http.bodies import CitationBody, ContextBody
from planner.surfaces.http.entry import Reading
from planner.surfaces.http.openapi import PlanPath, described, router
from planner.surfaces.http.queries import NoQuery
from planner.surfaces.http.service import fields_of

HOW = ("unit", "neighbours", "on_misfit", "max_frac")
"""What of a body of /v1/context is about the delivery; the rest is the plan's request."""

routes = router("deliveries")


@routes.post("/v1/plans/{plan}/deliveries", **described(DeliveryAnswer, body=DeliverRequest))
async def deliver(exchange: Reading, plan: PlanPath, query: Annotated[NoQuery, Query()]) -> Response:
    """Deliver what a plan selected as the text that a model reads, within a budget that counts all of it."""
    body = await exchange.body()
    ref, planner = exchange.access.plan(plan), exchange.service.planner

    def work() -> dict[str, object]:
        how = DeliverRequest(**fields_of(body)).model_dump()
        return planner.deliver(ref, **how).to_dict()

    return await exchange.answer(work)


@routes.post("/v1/context", **described(DeliveryAnswer, body=ContextBody, errors=(502,)))
async def context(exchange: Reading, query: Annotated[NoQuery, Query()]) -> Response:
    """Plan the evidence for a question and deliver it; the budget bounds the whole text."""
    body, planner = await exchange.body(), exchange.service.planner

    def work() -> dict[str, object]:
        fields = fields_of(body)
        how = {name: fields.pop(name) for name in HOW if name in fields}
        request = PlanRequest.parse(fields)
        exchange.access.scope(request.scope)
        return planner.context(request, **how).to_dict()

    return await exchange.answer(work)


@routes.post("/v1/citations/verify", **described(CitationAnswer, body=CitationBody))
async def verify_citation(exchange: Reading, query: Annotated[NoQuery, Query()]) -> Response:
    """Say whether a quote is in the evidence that it cites."""
    body, planner = await exchange.body(), exchange.service.planner

    def work() -> dict[str, object]:
        cited = CitationBody(**fields_of(body))
        ref = exchange.access.plan(cited.plan)
        return planner.verify_citation(ref, cited.quote, cited.evidence).to_dict()

    return await exchange.answer(work)
