"""The query parameters of the routes: closed like the bodies, so that a misspelt one is refused."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.pipeline.plans import MAX_TEXT, PlanOutcome
from planner.request import SCOPE_PATTERN, Time

PageSize = Annotated[int, Field(ge=1, description="Rows of the page, up to the operator's max_page")]


class Query(BaseModel):
    """Base of the query parameters of a route."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoQuery(Query):
    """No parameters."""


class PlansQuery(Query):
    """Which plans of a scope."""

    scope: Annotated[str, Field(pattern=SCOPE_PATTERN)]
    after: Annotated[str, Field(description="The `next_after` of the page before")] | None = None
    limit: PageSize = 50
    outcome: PlanOutcome | None = None
    since: Annotated[Time, Field(description="Made at this time or later")] | None = None
    until: Annotated[Time, Field(description="Made before this time")] | None = None
    text: (
        Annotated[str, Field(min_length=1, max_length=MAX_TEXT, description="Held by the question")] | None
    ) = None


class PlanQuery(Query):
    """What of a plan."""

    include: (
        Annotated[Literal["rejected"], Field(description="The rejected candidates too; asks for `inspect`")]
        | None
    ) = None


class WhyQuery(Query):
    """What is asked about."""

    what: Annotated[
        str, Field(min_length=1, max_length=10_000, description="A span, a node, a source, or a phrase")
    ]


class SourcesQuery(Query):
    """Which sources of a scope."""

    after: Annotated[str, Field(description="The `next_after` of the page before")] | None = None
    limit: PageSize = 50
