"""The nouns, in the order in which data flows: source, span, node, edge, candidate, selection, plan.

All frozen; ranges are half-open byte ranges of a source version's canonical UTF-8 text.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple
from uuid import UUID

from planner.errors import RequestError

JsonObject = Mapping[str, Any]

NO_TEXT_HASH = bytes(32)
"""The text hash of a candidate that came without text."""

OPEN_TX = 2**63 - 1
"""`tx_to` of a row that is current."""

SourceClass = Literal["truth", "cache"]
Trust = Literal["untrusted", "external", "internal", "verified"]

TRUST_ORDER: tuple[Trust, ...] = ("untrusted", "external", "internal", "verified")
"""Trust classes from least to most."""

STRUCTURE = frozenset({"part_of", "next", "links_to"})
"""The predicates of the edges that parsing itself makes."""

_REF = re.compile(r"(?P<source>.+)@(?P<tx>\d{1,19}):(?P<start>\d{1,19})-(?P<end>\d{1,19})", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class SpanRef:
    """One span of one source version, written `source@tx:start-end`; ordered as `source_id`, `tx`, range."""

    source_id: str
    version_tx: int
    start: int
    end: int

    def __str__(self) -> str:
        """Write the reference."""
        return f"{self.source_id}@{self.version_tx}:{self.start}-{self.end}"

    @classmethod
    def parse(cls, text: str) -> SpanRef:
        """Read `source@tx:start-end`; the source id may itself hold `@` and `:`. Raises RequestError."""
        match = _REF.fullmatch(text)
        if match is None:
            raise RequestError(f"{text!r} is not a span reference; write source@tx:start-end")
        return cls(match["source"], int(match["tx"]), int(match["start"]), int(match["end"]))


# --- ingest ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """A row of the span ledger: a packable byte range with the counts that token formulas need."""

    start: int
    end: int
    kind: str
    ordinal: int
    ascii_bytes: int
    non_ascii_chars: int
    text_hash: bytes
    heading_path: tuple[str, ...] = ()
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class SourceDraft:
    """A parsed source, ready to be written as one version.

    `text` is the canonical text: UTF-8, `\\n` newlines, otherwise the author's bytes. `spans` are in
    the order of their ordinals. A source of a conversation has its id and position there.
    """

    source_id: str
    media_type: str
    text: bytes
    spans: tuple[Span, ...]
    parser_version: str
    source_class: SourceClass = "truth"
    title: str | None = None
    uri: str | None = None
    trust: Trust = "external"
    attributes: JsonObject = field(default_factory=dict)
    observed_at: datetime | None = None
    conversation_id: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """A node and the spans it stands for: `(source_id, start, end)` of the drafts in the same batch."""

    node_id: str
    kind: str
    label: str
    spans: tuple[tuple[str, int, int], ...]
    attributes: JsonObject = field(default_factory=dict)
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    observed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EdgeDraft:
    """A directed edge between two nodes of a scope."""

    src: str
    dst: str
    predicate: str
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What one ingest transaction writes: usually one source, or all that an open import file holds.

    `embeddings` are vectors that the input itself brought, by node id, for the model named in
    `embedding_model` (name); all other nodes with spans are embedded by the scope's embedder. Of the edges
    that leave the batch's nodes, those with one of `predicates` are replaced (None: all of them).
    """

    sources: tuple[SourceDraft, ...]
    nodes: tuple[NodeDraft, ...]
    edges: tuple[EdgeDraft, ...]
    embeddings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    embedding_model: str | None = None
    predicates: frozenset[str] | None = STRUCTURE


@dataclass(frozen=True, slots=True)
class IngestedSource:
    """What became of one source: its newest version, and what changed with it."""

    source_id: str
    status: Literal["new", "changed", "unchanged"]
    version_tx: int
    spans: int


@dataclass(frozen=True, slots=True)
class IngestFailure:
    """One input that could not be ingested, and why; the rest of the ingest went on."""

    path: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The result of one ingest call, source by source. Counts are of rows written, over all sources."""

    scope: str
    sources: tuple[IngestedSource, ...] = ()
    failures: tuple[IngestFailure, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            "scope": self.scope,
            "sources": [asdict(source) for source in self.sources],
            "failures": [asdict(failure) for failure in self.failures],
            "counts": dict(self.counts),
        }


# --- recall ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reached:
    """How expansion came to a node: by which path of node ids, at what decay, and how similar it is.

    `similarity` is None where there is no question or the node has no vector.
    """

    hops: int
    decay: float
    path: tuple[str, ...]
    similarity: float | None


@dataclass(frozen=True, slots=True)
class RecalledNode:
    """A node that recall found: by which legs, its best S(n), and whether `max_nodes` cut it."""

    node_id: str
    score: float
    legs: tuple[str, ...]
    similarity: float | None = None
    reached: Reached | None = None
    cut: bool = False


# --- selection ------------------------------------------------------------------------------------


class Outcome(StrEnum):
    """The fate of a candidate; exactly one each."""

    SELECTED = "selected"
    DUPLICATE = "duplicate"
    UNPACKABLE = "unpackable"
    OVER_BUDGET = "over_budget"
    OVER_SOURCE_CAP = "over_source_cap"
    UNSLICEABLE = "unsliceable"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One span of the pool, with the best score S(n) of the nodes that brought it in.

    `tokens` is a count by the plan's counter; `text_hash` the BLAKE3-256 of the span's UTF-8 text, or
    32 zero bytes where it came without text. An unsliceable one is in the pool only to be counted.
    """

    source_id: str
    version_tx: int
    start: int
    end: int
    kind: str
    source_class: SourceClass
    score: float
    tokens: int
    text_hash: bytes = NO_TEXT_HASH
    node_id: str | None = None
    sliceable: bool = True

    @property
    def ref(self) -> SpanRef:
        """The span's key."""
        return SpanRef(self.source_id, self.version_tx, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Budget:
    """How the requested budget became the one that binds; all in tokens of `counter`.

    `ceiling` is the least of the operator's maximum and half the context window, where known.
    """

    requested: int
    budget: int
    cap: int
    counter: str
    estimate: bool
    max_frac: float
    ceiling: int | None = None
    narrowed_by: Literal["max_budget", "context_window"] | None = None


@dataclass(frozen=True, slots=True)
class SelectionPolicy:
    """All that Phase B obeys beside the budget (selection.md)."""

    kind_priors: Mapping[str, float]
    cache_discount: float
    dedup_overlap: float
    plan_model: Literal["v1", "v2"] = "v1"


class Verdict(NamedTuple):
    """One candidate's fate. `order` counts selected spans from 0 in the order in which they were packed.

    A tuple, because selection makes one for every candidate: frozen dataclasses took 2.4 times as long.
    """

    candidate: Candidate
    weight: float
    outcome: Outcome
    order: int | None = None
    duplicate_of: SpanRef | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The result of Phase B over a whole pool.

    `verdicts` holds every candidate in rank order, unsliceable ones last by key; `selected` those
    packed, in selection order. `stats` are the twelve hashed figures of selection.md, in its order.
    """

    verdicts: tuple[Verdict, ...]
    selected: tuple[Verdict, ...]
    budget: Budget
    used: int
    stats: Mapping[str, int]
    optimality_gap_ppm: int

    def rejected(self) -> tuple[Verdict, ...]:
        """Return what was not selected, in rank order."""
        return tuple(v for v in self.verdicts if v.outcome is not Outcome.SELECTED)


# --- plans ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanRef:
    """A plan is known as `<scope>:<plan_id>`, so that a lookup knows its scope."""

    scope: str
    plan_id: str

    def __str__(self) -> str:
        """Write the reference."""
        return f"{self.scope}:{self.plan_id}"

    @classmethod
    def parse(cls, text: str) -> PlanRef:
        """Read `<scope>:<plan_id>`. Raises RequestError."""
        scope, colon, plan_id = text.partition(":")
        try:
            canonical = str(UUID(plan_id))
        except ValueError:
            canonical = ""
        if not (scope and colon and canonical == plan_id.lower()):
            raise RequestError(f"{text!r} is not a plan reference; write <scope>:<plan_id>")
        return cls(scope, canonical)


@dataclass(frozen=True, slots=True)
class PlannedSpan:
    """A candidate as a plan reports it. `text` is filled for selected spans that are not erased."""

    verdict: Verdict
    text: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the key, kind, class, weight (and its 64 bits), tokens and fate."""
        verdict, candidate = self.verdict, self.verdict.candidate
        out: dict[str, Any] = {
            "ref": str(candidate.ref),
            "source_id": candidate.source_id,
            "version_tx": candidate.version_tx,
            "start": candidate.start,
            "end": candidate.end,
            "kind": candidate.kind,
            "class": candidate.source_class,
            "node_id": candidate.node_id,
            "score": candidate.score,
            "weight": verdict.weight,
            "weight_bits": weight_bits(verdict.weight),
            "tokens": candidate.tokens,
        }
        if verdict.outcome is Outcome.SELECTED:
            return {**out, "text": self.text}
        out["outcome"] = verdict.outcome.value
        if verdict.duplicate_of is not None:
            out["duplicate_of"] = str(verdict.duplicate_of)
        return out


@dataclass(frozen=True, slots=True)
class EvidencePlan:
    """A persisted decision: what is selected, what is rejected, and the hashes that prove it.

    `spans` are in selection order, `rejected` in rank order. `stats` are the hashed figures; `recall`
    (counts by leg, method, cuts) and `timings` (milliseconds by stage) are reported beside them. A refused
    plan (insufficient evidence) has a pool and no spans, a failed one neither hashes nor a pool.
    """

    ref: PlanRef
    created_at: datetime
    outcome: Literal["planned", "refused", "failed"]
    error: JsonObject | None
    plan_hash: str | None
    pool_hash: str | None
    plan_model: str
    score_model: str
    as_of: int
    budget: Budget
    used: int
    stats: Mapping[str, int]
    optimality_gap_ppm: int
    spans: tuple[PlannedSpan, ...]
    rejected: tuple[PlannedSpan, ...]
    request: JsonObject
    recall: JsonObject
    timings: Mapping[str, float]

    @property
    def plan_id(self) -> str:
        """The plan's UUID, time-ordered."""
        return self.ref.plan_id

    def to_dict(self, *, rejected: bool = True) -> dict[str, Any]:
        """Return the plan as JSON data, with the same names on every surface."""
        out: dict[str, Any] = {
            "plan": str(self.ref),
            "plan_id": self.ref.plan_id,
            "scope": self.ref.scope,
            "created_at": self.created_at.isoformat(),
            "outcome": self.outcome,
            "error": self.error,
            "plan_hash": self.plan_hash,
            "pool_hash": self.pool_hash,
            "plan_model": self.plan_model,
            "score_model": self.score_model,
            "as_of": self.as_of,
            "budget_requested": self.budget.requested,
            "budget": self.budget.budget,
            "narrowed_by": self.budget.narrowed_by,
            "used": self.used,
            "cap": self.budget.cap,
            "counter": self.budget.counter,
            "stats": {**self.stats, "optimality_gap_ppm": self.optimality_gap_ppm},
            "request": dict(self.request),
            "recall": dict(self.recall),
            "timings_ms": dict(self.timings),
            "spans": [span.to_dict() for span in self.spans],
        }
        if rejected:
            out["rejected"] = [span.to_dict() for span in self.rejected]
        return out


def weight_bits(weight: float) -> str:
    """Return the IEEE-754 binary64 bits of `weight` as 16 hex digits, most significant first."""
    return struct.pack(">d", weight).hex()
