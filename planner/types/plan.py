"""A persisted decision, as callers see it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from planner.types.pool import Budget, Outcome, Verdict
from planner.types.refs import JsonObject, PlanRef, SpanRef


@dataclass(frozen=True, slots=True)
class PlannedSpan:
    """A candidate as a plan reports it.

    `text` is filled for selected spans; `origin_erased` says that it is gone since.
    """

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
            return {**out, "text": self.text, "origin_erased": self.text is None}
        out["outcome"] = verdict.outcome.value
        if verdict.duplicate_of is not None:
            out["duplicate_of"] = str(verdict.duplicate_of)
        return out


@dataclass(frozen=True, slots=True)
class Evidence:
    """A selected span of truth, to hold a claim against: its text, and the BLAKE3-256 that this must have.

    `text` is None where it was erased since.
    """

    evidence: str
    ref: SpanRef
    text: str | None
    text_hash: bytes

    def to_dict(self) -> dict[str, Any]:
        """Return the evidence as JSON data."""
        return {
            "evidence": self.evidence,
            "ref": str(self.ref),
            "text": self.text,
            "text_hash": self.text_hash.hex(),
        }


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

    @property
    def stale(self) -> frozenset[SpanRef]:
        """The spans of its pool that are derived text which no longer held as of the plan.

        What they were made from had a newer version, or was withdrawn or erased.
        """
        return frozenset(map(SpanRef.parse, self.recall.get("stale", ())))

    def for_verification(self) -> tuple[Evidence, ...]:
        """Return the selected spans of truth, best first; derived text (class `cache`) is never one."""
        chosen = [(evidence_id(rank), span) for rank, span in enumerate(ranked(self), start=1)]
        return tuple(
            Evidence(name, span.verdict.candidate.ref, span.text, span.verdict.candidate.text_hash)
            for name, span in chosen
            if span.verdict.candidate.source_class == "truth"
        )

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


def ranked(plan: EvidencePlan) -> tuple[PlannedSpan, ...]:
    """Return the selected spans in rank order (selection.md): by weight, the best first, ties by span."""
    return tuple(sorted(plan.spans, key=lambda span: (-span.verdict.weight, span.verdict.candidate.ref)))


def evidence_id(rank: int) -> str:
    """Return the name by which the selected span of that rank, counted from 1, is cited."""
    return f"E{rank}"


def weight_bits(weight: float) -> str:
    """Return the IEEE-754 binary64 bits of `weight` as 16 hex digits, most significant first."""
    return struct.pack(">d", weight).hex()
