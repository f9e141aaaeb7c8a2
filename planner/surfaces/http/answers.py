"""The answers as /openapi.json describes them. They are the library's `to_dict()`; nothing is made by these.

A test holds every answer against its model, so that neither has a field that the other lacks.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.pipeline.plans import PlanOutcome
from planner.types import SourceClass, Trust, Unit

Whole = Literal["chunk", "window", "record"]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="BLAKE3-256")]
SpanText = Annotated[str, Field(description="A span, as source@tx:start-end")]
PlanText = Annotated[str, Field(description="A plan, as <scope>:<plan_id>")]
Share = Annotated[float, Field(ge=0, le=1)]
Pair = Annotated[list[Any], Field(min_length=2, max_length=2, description="Of the first plan, of the second")]


class Problem(BaseModel):
    """What went wrong (RFC 9457); further members are its facts, such as the `field` that is wrong."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    detail: str
    code: str
    status: int


class CandidateAnswer(BaseModel):
    """A candidate of a plan."""

    ref: SpanText
    source_id: str
    version_tx: int
    start: int
    end: int
    kind: str
    source_class: Annotated[SourceClass, Field(alias="class")]
    node_id: str | None
    score: Share
    weight: float
    weight_bits: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    tokens: int


class SelectedAnswer(CandidateAnswer):
    """A selected span; its text is null where it was erased since."""

    text: str | None
    origin_erased: bool


class RejectedAnswer(CandidateAnswer):
    """A rejected candidate, and why."""

    outcome: Literal["duplicate", "unpackable", "over_budget", "over_source_cap", "unsliceable"]
    duplicate_of: SpanText | None = None


class PlanFigures(BaseModel):
    """What a plan and its line in a list have in common."""

    plan: PlanText
    plan_id: str
    scope: str
    created_at: datetime
    outcome: PlanOutcome
    plan_hash: Hash | None
    pool_hash: Hash | None
    plan_model: str
    score_model: str
    as_of: int
    budget_requested: int
    budget: int
    used: int
    cap: int
    counter: str


class PlanAnswer(PlanFigures):
    """A plan: what is selected, within which budget, and the hashes that prove it."""

    error: dict[str, Any] | None
    narrowed_by: str | None
    stats: dict[str, int]
    request: dict[str, Any]
    recall: dict[str, Any]
    timings_ms: dict[str, float]
    spans: list[SelectedAnswer]
    rejected: list[RejectedAnswer] | None = None


class PlanLine(PlanFigures):
    """A plan in a line: `counts` are its candidates by outcome."""

    error_code: str | None
    question: str | None
    candidates: int
    counts: dict[str, int]
    took_ms: float


class PlanPageAnswer(BaseModel):
    """Some plans of a scope, newest first; `next_after` is null at the end."""

    scope: str
    plans: list[PlanLine]
    next_after: str | None


class WhyFate(BaseModel):
    """What became of one span or node; further members are the figures that decided it."""

    model_config = ConfigDict(extra="allow")

    ref: SpanText | None
    node_id: str | None
    stage: str
    sentence: str
    sufficient_budget: int | None
    sufficient_max_frac: float | None


class WhyAnswer(BaseModel):
    """The first stage at which something fell, the best answer first."""

    plan: PlanText
    what: str
    resolved_as: Literal["span", "node", "source", "phrase"] | None
    outcome: PlanOutcome
    sentence: str
    stages: dict[str, int]
    answers: list[WhyFate]
    more: int


class ReplayAnswer(BaseModel):
    """A replay that came out the same; one that did not is a problem."""

    plan: PlanText
    identical: Literal[True]
    plan_hash: Hash
    pool_hash: Hash
    candidates: int
    selected: int


class DriftAnswer(BaseModel):
    """What of a plan's ground has moved."""

    drift: Annotated[str, Field(alias="class")]
    evidence: list[str]
    rows: int


class ChangeAnswer(BaseModel):
    """One span that is selected in one plan only, or at another place in both."""

    ref: SpanText
    change: str
    reasons: list[str]
    place: Pair
    score: Pair
    weight: Pair
    tokens: Pair


class ReplanningAnswer(BaseModel):
    """A plan that was made again: the same hashes, or what drifted."""

    plan: PlanText
    as_of: int
    identical: bool
    plan_hash: Hash | None
    pool_hash: Hash | None
    plan_hash_again: Hash | None
    pool_hash_again: Hash | None
    error: dict[str, Any] | None
    drifts: list[DriftAnswer]
    notes: list[DriftAnswer]
    changes: list[ChangeAnswer]
    again: PlanText | None


class DiffAnswer(BaseModel):
    """Two plans compared."""

    a: PlanText
    b: PlanText
    same_plan: bool
    same_pool: bool
    figures: dict[str, Pair]
    request: dict[str, Pair]
    config: dict[str, Pair]
    changes: list[ChangeAnswer]


class ItemAnswer(BaseModel):
    """One envelope: the evidence in it, the source bytes that it shows, and where its body is in the text."""

    evidence: list[str]
    ref: SpanText
    unit: Whole
    start: int
    end: int
    speaker: str | None
    erased: bool


class SkippedAnswer(BaseModel):
    """A hit that is not in the bundle."""

    evidence: str
    ref: SpanText
    reason: Literal["over_budget", "over_source_cap"]


class CutAnswer(BaseModel):
    """A unit that was delivered in part."""

    evidence: str
    unit: Whole
    ref: SpanText
    bytes_left_out: int


class DeliveryAnswer(BaseModel):
    """A bundle: `text` is the exact text that the model reads, `used` its tokens by `counter`."""

    delivery_id: str | None
    plan: PlanText | None
    plan_hash: Hash | None
    delivery_hash: Hash
    framing_version: str
    unit: Unit
    counter: str
    counter_bound: Literal["exact", "upper_bound", "estimate"]
    budget: int
    used: int
    options: dict[str, Any]
    sources: dict[str, int]
    items: list[ItemAnswer]
    skipped: list[SkippedAnswer]
    cuts: list[CutAnswer]
    text: str


class CitationAnswer(BaseModel):
    """Whether a quote is in the evidence that it cites; `found` are the bytes that say it."""

    plan: PlanText
    evidence: str
    quote: str
    verdict: Literal["supported", "not_in_span", "cache_class", "unknown_evidence", "erased"]
    supported: bool
    sentence: str
    ref: SpanText | None
    found: SpanText | None


class IngestedAnswer(BaseModel):
    """What became of one source."""

    source_id: str
    status: Literal["new", "changed", "unchanged", "withdrawn"]
    version_tx: int
    spans: int


class IngestAnswer(BaseModel):
    """What was written; `counts` are rows, none where nothing changed."""

    scope: str
    sources: list[IngestedAnswer]
    failures: Annotated[list[dict[str, str]], Field(description="Always empty here: a failure is a problem")]
    counts: dict[str, int]


class SourceLine(BaseModel):
    """A source with its newest version."""

    source_id: str
    media_type: str
    source_class: Annotated[SourceClass, Field(alias="class")]
    version_tx: int
    title: str | None
    trust: Trust
    byte_length: int
    observed_at: datetime | None
    erased: bool
    withdrawn: bool


class SourceInPage(SourceLine):
    """A source of a page; `spans` counts those of its text."""

    spans: int


class SourcePageAnswer(BaseModel):
    """Some sources of a scope by id; `next_after` is null at the end."""

    scope: str
    sources: list[SourceInPage]
    next_after: str | None


class SpanAnswer(BaseModel):
    """A span of a source, without its text."""

    ref: SpanText
    start: int
    end: int
    kind: str
    ordinal: int
    ascii_bytes: int
    non_ascii_chars: int
    text_hash: Hash
    heading_path: list[str]
    speaker: str | None
    message_id: str | None


class SourceAnswer(SourceLine):
    """All that is kept of a source and its newest version, but the text."""

    scope: str
    conversation_id: str | None
    position: int | None
    uri: str | None
    actor: str
    attributes: dict[str, Any]
    text_hash: Hash
    parser_version: str
    ingested_at: datetime
    versions: int
    spans: list[SpanAnswer]


class ErasedAnswer(BaseModel):
    """What was erased; `tx` is null where nothing was left to erase."""

    scope: str
    source: str
    tx: int | None
    sources: list[str]
    versions: int
    nodes: int
    vectors: int
    counts: int
    held_back: None


class AliveAnswer(BaseModel):
    """The process runs."""

    status: Literal["alive"]


class ReadyAnswer(BaseModel):
    """Each part is `ok`, or the code of what is wrong."""

    ready: bool
    schema_state: Annotated[str, Field(alias="schema")]
    pool: str
    embedder: str
