"""One plan as the trace keeps it, in its two forms: the row that is written, the plan that callers see."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from planner.types import (
    Budget,
    Candidate,
    EvidencePlan,
    Outcome,
    PlannedSpan,
    PlanRef,
    RecalledNode,
    Selection,
    SelectionPolicy,
    SpanRef,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Record:
    """Everything that is recorded of one plan. Texts are not part of it."""

    ref: PlanRef
    created_at: datetime
    outcome: Literal["planned", "refused", "failed"]
    error: Mapping[str, Any] | None
    plan_hash: str | None
    pool_hash: str | None
    score_model: str
    as_of: int
    request: Mapping[str, Any]
    policy: SelectionPolicy
    config: Mapping[str, Any]
    query_vectors: Sequence[Sequence[float]]
    selection: Selection
    recall: Mapping[str, Any]
    cuts: Mapping[str, Any]
    timings: Mapping[str, float]
    versions: Mapping[str, str]
    nodes: tuple[RecalledNode, ...] = ()
    fresh_counts: Mapping[bytes, int] = field(default_factory=dict)

    def to_plan(self, texts: Mapping[SpanRef, str]) -> EvidencePlan:
        """Return the plan as callers see it, with the texts of what was selected where there are any."""
        return EvidencePlan(
            ref=self.ref,
            created_at=self.created_at,
            outcome=self.outcome,
            error=self.error,
            plan_hash=self.plan_hash,
            pool_hash=self.pool_hash,
            plan_model=self.policy.plan_model,
            score_model=self.score_model,
            as_of=self.as_of,
            budget=self.selection.budget,
            used=self.selection.used,
            stats=self.selection.stats,
            optimality_gap_ppm=self.selection.optimality_gap_ppm,
            spans=tuple(PlannedSpan(v, texts.get(v.candidate.ref)) for v in self.selection.selected),
            rejected=tuple(PlannedSpan(v) for v in self.selection.rejected()),
            request=self.request,
            recall=self.recall,
            timings=self.timings,
        )

    def to_row(self, scope_id: UUID) -> dict[str, Any]:
        """Return the parameters of the statement `persist_plan`."""
        budget, selection = self.selection.budget, self.selection
        stats = {**selection.stats, "optimality_gap_ppm": selection.optimality_gap_ppm}
        return {
            "scope_id": scope_id,
            "plan_id": UUID(self.ref.plan_id),
            "created_at": self.created_at,
            "outcome": self.outcome,
            "error_code": self.error["code"] if self.error else None,
            "error": json.dumps(self.error) if self.error else None,
            "plan_hash": bytes.fromhex(self.plan_hash) if self.plan_hash else None,
            "pool_hash": bytes.fromhex(self.pool_hash) if self.pool_hash else None,
            "plan_model": self.policy.plan_model,
            "score_model": self.score_model,
            "as_of": self.as_of,
            "request": json.dumps(self.request),
            "config": json.dumps(self.config),
            "query_vectors": [list(row) for row in self.query_vectors],
            "counter": budget.counter,
            "token_estimate": budget.estimate,
            "budget_requested": budget.requested,
            "budget": budget.budget,
            "budget_ceiling": budget.ceiling,
            "narrowed_by": budget.narrowed_by,
            "max_frac": budget.max_frac,
            "cap": budget.cap,
            "used": selection.used,
            "stats": json.dumps(stats),
            "recall": json.dumps(self.recall),
            "cuts": json.dumps(self.cuts),
            "timings": json.dumps(self.timings),
            "versions": json.dumps(self.versions),
            "t_hash": list(self.fresh_counts),
            "t_tokens": list(self.fresh_counts.values()),
            **_candidate_columns(selection.verdicts),
            **_node_columns(self.nodes),
        }

    @classmethod
    def from_rows(cls, ref: PlanRef, row: Sequence[Any], candidates: Sequence[Sequence[Any]]) -> Record:
        """Read a plan back from the rows of `plan_row` and `plan_candidates`."""
        (
            created_at,
            outcome,
            error,
            plan_hash,
            pool_hash,
            plan_model,
            score_model,
            as_of,
            request,
            config,
        ) = row[:10]
        (vectors, counter, estimate, requested, tokens, ceiling, narrowed_by, max_frac, cap, used) = row[
            10:20
        ]
        (stats, recall, cuts, timings, versions) = row[20:]
        budget = Budget(requested, tokens, cap, counter, estimate, max_frac, ceiling, narrowed_by)
        verdicts = _verdicts(candidates)
        selected = sorted((v for v in verdicts if v.order is not None), key=lambda v: v.order or 0)
        gap = stats.pop("optimality_gap_ppm")
        return cls(
            ref=ref,
            created_at=created_at,
            outcome=outcome,
            error=error,
            plan_hash=plan_hash.hex() if plan_hash else None,
            pool_hash=pool_hash.hex() if pool_hash else None,
            score_model=score_model,
            as_of=as_of,
            request=request,
            policy=policy_from(config, plan_model),
            config=config,
            query_vectors=vectors,
            selection=Selection(verdicts, tuple(selected), budget, used, stats, gap),
            recall=recall,
            cuts=cuts,
            timings=timings,
            versions=versions,
        )


def policy_from(config: Mapping[str, Any], plan_model: Literal["v1", "v2"]) -> SelectionPolicy:
    """Return the policy that a recorded configuration holds."""
    return SelectionPolicy(
        kind_priors=config["kind_priors"],
        cache_discount=config["cache_discount"],
        dedup_overlap=config["dedup_overlap"],
        plan_model=plan_model,
    )


def _candidate_columns(verdicts: Sequence[Verdict]) -> dict[str, list[Any]]:
    originals = {v.duplicate_of for v in verdicts}
    rank_of = {ref: rank for rank, v in enumerate(verdicts) if (ref := v.candidate.ref) in originals}
    pool = [v.candidate for v in verdicts]
    weights = [v.weight for v in verdicts]
    return {
        "rank": list(range(len(verdicts))),
        "selection_order": [v.order for v in verdicts],
        "source_id": [c.source_id for c in pool],
        "version_tx": [c.version_tx for c in pool],
        "start": [c.start for c in pool],
        "end": [c.end for c in pool],
        "kind": [c.kind for c in pool],
        "class": [c.source_class for c in pool],
        "score": [c.score for c in pool],
        "weight": weights,
        "weight_bits": list(struct.unpack(f">{len(pool)}q", struct.pack(f">{len(pool)}d", *weights))),
        "tokens": [c.tokens for c in pool],
        "text_hash": [c.text_hash for c in pool],
        "node_id": [c.node_id for c in pool],
        "candidate_outcome": [v.outcome.value for v in verdicts],
        "duplicate_of": [None if v.duplicate_of is None else rank_of[v.duplicate_of] for v in verdicts],
    }


def _node_columns(nodes: Sequence[RecalledNode]) -> dict[str, list[Any]]:
    reached = [node.reached for node in nodes]
    return {
        "n_node_id": [node.node_id for node in nodes],
        "n_legs": [",".join(node.legs) for node in nodes],
        "n_score": [node.score for node in nodes],
        "n_similarity": [node.similarity for node in nodes],
        "n_hops": [walked.hops if walked else None for walked in reached],
        "n_decay": [walked.decay if walked else None for walked in reached],
        "n_path": [json.dumps(walked.path) if walked else None for walked in reached],
        "n_cut": ["max_nodes" if node.cut else None for node in nodes],
    }


def _verdicts(rows: Sequence[Sequence[Any]]) -> tuple[Verdict, ...]:
    refs = {row[0]: SpanRef(*row[2:6]) for row in rows}
    out = []
    for row in rows:
        (
            _,
            order,
            source_id,
            tx,
            start,
            end,
            kind,
            klass,
            score,
            bits,
            tokens,
            hashed,
            node_id,
            outcome,
            original,
        ) = row
        candidate = Candidate(
            source_id, tx, start, end, kind, klass, score, tokens, bytes(hashed), node_id,
            sliceable=outcome != Outcome.UNSLICEABLE,
        )  # fmt: skip
        (weight,) = struct.unpack(">d", struct.pack(">q", bits))
        duplicate_of = refs.get(original)
        out.append(Verdict(candidate, weight, Outcome(outcome), order, duplicate_of))
    return tuple(out)
