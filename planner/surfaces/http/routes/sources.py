"""What a scope holds: written, listed, described, erased."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Query
from fastapi.responses import Response

from planner.surfaces.http.answers import ErasedAnswer, IngestAnswer, SourceAnswer, SourcePageAnswer
from planner.surfaces.http.bodies import AppendBody, IngestBody
from planner.surfaces.http.entry import Erasing, Reading, Writing
from planner.surfaces.http.openapi import ScopePath, SourcePath, described, router
from planner.surfaces.http.queries import NoQuery, SourcesQuery
from planner.surfaces.http.service import fields_of

IDEMPOTENCY_KEY = "Idempotency-Key"

Key = Annotated[
    str | None,
    Header(alias=IDEMPOTENCY_KEY, description="What was written under a key is not written again under it"),
]

routes = router("sources")


@routes.post("/v1/scopes/{scope}/sources", **described(IngestAnswer, body=IngestBody, errors=(409, 502)))
async def ingest(
    exchange: Writing, scope: ScopePath, query: Annotated[NoQuery, Query()], key: Key = None
) -> Response:
    """Ingest one source, or a whole import file; nothing is written where nothing changed."""
    name, planner = exchange.access.scope(scope), exchange.service.planner
    body = await exchange.body()

    def work() -> dict[str, object]:
        given = IngestBody(**fields_of(body)).model_dump()
        return planner.ingest_text(name, given.pop("id"), **given, idempotency_key=key).to_dict()

    return await exchange.answer(work)


@routes.get("/v1/scopes/{scope}/sources", **described(SourcePageAnswer))
async def list_sources(
    exchange: Reading, scope: ScopePath, query: Annotated[SourcesQuery, Query()]
) -> Response:
    """List the sources of a scope, by id, a page at a time."""
    name, planner = exchange.access.scope(scope), exchange.service.planner
    limit = exchange.service.limits.page(query.limit)
    return await exchange.answer(lambda: planner.sources(name, after=query.after, limit=limit).to_dict())


@routes.post(
    "/v1/scopes/{scope}/sources/{source:path}/append",
    **described(IngestAnswer, body=AppendBody, errors=(409, 502)),
)
async def append(
    exchange: Writing,
    scope: ScopePath,
    source: SourcePath,
    query: Annotated[NoQuery, Query()],
    key: Key = None,
) -> Response:
    """Put messages behind the last of a conversation; one whose `id` is there already is passed over."""
    name, planner = exchange.access.scope(scope), exchange.service.planner
    body = await exchange.body()

    def work() -> dict[str, object]:
        messages = AppendBody(**fields_of(body)).messages
        return planner.append(name, source, messages, idempotency_key=key).to_dict()

    return await exchange.answer(work)


@routes.get("/v1/scopes/{scope}/sources/{source:path}", **described(SourceAnswer))
async def read_source(
    exchange: Reading, scope: ScopePath, source: SourcePath, query: Annotated[NoQuery, Query()]
) -> Response:
    """Describe a source: its newest version and its spans, without their text."""
    name, planner = exchange.access.scope(scope), exchange.service.planner
    return await exchange.answer(lambda: planner.source(name, source).to_dict())


@routes.delete("/v1/scopes/{scope}/sources/{source:path}", **described(ErasedAnswer))
async def erase(
    exchange: Erasing, scope: ScopePath, source: SourcePath, query: Annotated[NoQuery, Query()]
) -> Response:
    """Erase what a source and the caches made from it say; what plans decided stays."""
    name, planner = exchange.access.scope(scope), exchange.service.planner
    return await exchange.answer(lambda: planner.erase(name, source).to_dict())
