"""The bodies that the library has no model of: closed and strict like its own requests."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from planner.request import DeliverRequest, Id, Listed, PlanRequest, Request, Time
from planner.types import SourceClass, Trust

PlanText = Annotated[str, Field(max_length=128, description="A plan, as <scope>:<plan_id>")]


class IngestBody(Request):
    """A source: its id in the scope and its text, which may be a whole import file."""

    id: Id
    text: Annotated[str, Field(min_length=1)]
    media_type: Annotated[str, Field(max_length=200)] | None = None
    title: str | None = None
    uri: str | None = None
    trust: Trust = "external"
    attributes: dict[str, Any] = Field(default_factory=dict)
    source_class: Annotated[SourceClass, Field(alias="class")] = "truth"
    observed_at: Time | None = None


class AppendBody(Request):
    """The next turns of a conversation, in order: each with `content`, `speaker` or `role`, `time`, `id`."""

    messages: Annotated[tuple[dict[str, Any], ...], Listed, Field(min_length=1, max_length=1_000)]


class ContextBody(PlanRequest, DeliverRequest):
    """A question, and how the evidence for it is delivered; `budget_tokens` bounds the whole text."""


class CitationBody(Request):
    """A quote, and the evidence of a plan that it cites: `E<rank>`, or a span."""

    plan: PlanText
    quote: Annotated[str, Field(max_length=1_000_000)]
    evidence: Annotated[str, Field(max_length=1_024)]


class ReplanBody(Request):
    """Whether the new plan is kept."""

    keep: bool = False
