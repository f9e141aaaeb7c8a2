"""A plan in words, as every surface tells it: its budget, its counts, what was packed in which order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from planner.recall.score import NO_DECAY, fuse
from planner.trace.delivery import DeliveryRecord
from planner.trace.record import Record
from planner.types import (
    Candidate,
    EvidencePlan,
    Outcome,
    PlannedSpan,
    RecalledNode,
    SelectionPolicy,
    SpanRef,
)

NEVER_PACKED = frozenset({Outcome.DUPLICATE, Outcome.UNSLICEABLE})
"""The fates of what never came to packing."""


def words(name: str) -> str:
    """Return a fate, a stage or a reason as people write it."""
    return name.replace("_", " ")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def budget_told(plan: EvidencePlan) -> str:
    """Say how the budget came about, and how it was counted."""
    budget = plan.budget
    parts = [f"{plan.used:,} of {budget.budget:,} tokens, at most {budget.cap:,} from one source"]
    if budget.narrowed_by:
        parts.append(f"{budget.requested:,} requested, narrowed by {budget.narrowed_by}")
    if budget.estimate:
        parts.append(f"{budget.counter} estimates: a tenth of the budget is kept in reserve")
    else:
        parts.append(f"counted by {budget.counter}")
    return "; ".join(parts)


def counts_told(plan: EvidencePlan) -> str:
    """Say how many candidates were selected, and what became of the rest."""
    stats = plan.stats
    fates = [outcome.value for outcome in Outcome if outcome is not Outcome.SELECTED]
    rejected = ", ".join(f"{stats[fate]} {words(fate)}" for fate in fates if stats[fate])
    return f"{stats['selected']} of {stats['candidates']} candidates selected; rejected: {rejected or 'none'}"


def kind_told(candidate: Candidate, stale: Collection[SpanRef]) -> str:
    """Return a span's kind, and that it is derived text; `stale` are the spans of the plan that were."""
    if candidate.source_class == "truth":
        return candidate.kind
    return f"{candidate.kind}, {'stale ' if candidate.ref in stale else ''}cache"


def delivery_told(delivery: DeliveryRecord) -> str:
    """Say what was delivered, and what was not."""
    about = f"{delivery.unit}, {delivery.used} of {delivery.budget} tokens by {delivery.counter}"
    parts = (
        f"{len(delivery.items)} pieces",
        f"{len(delivery.skipped)} skipped",
        f"{len(delivery.cuts)} cut",
    )
    return f"{about}; {', '.join(parts)}"


def taken_by_source(plan: EvidencePlan) -> Mapping[str, int]:
    """Return the tokens that each source has of the plan, the most first."""
    taken: dict[str, int] = {}
    for span in plan.spans:
        candidate = span.verdict.candidate
        taken[candidate.source_id] = taken.get(candidate.source_id, 0) + candidate.tokens
    return dict(sorted(taken.items(), key=lambda item: (-item[1], item[0])))


def density(span: PlannedSpan) -> float:
    """Return a span's weight by token, the order in which plan_model v1 packs."""
    return span.verdict.weight / max(1, span.verdict.candidate.tokens)


def walked(plan: EvidencePlan) -> Sequence[PlannedSpan]:
    """Return the rejected spans in the order of packing; last what never came to it, in rank order."""

    def order(span: PlannedSpan) -> tuple[bool, float]:
        never = span.verdict.outcome in NEVER_PACKED
        return never, -density(span) if plan.plan_model == "v1" else 0.0

    return sorted(plan.rejected, key=order)


def weight_told(candidate: Candidate, weight: float, policy: SelectionPolicy) -> str:
    """Say how a weight came about (selection.md)."""
    prior = policy.kind_priors.get(candidate.kind)
    parts = [f"score {candidate.score:.4f}"]
    if prior is not None:
        parts.append(f"{prior:g} for {candidate.kind}")
    if candidate.source_class == "cache":
        parts.append(f"{policy.cache_discount:g} for derived text")
    return f"weight {weight:.4f} = {' × '.join(parts)}"


def found_told(record: Record, node: RecalledNode | None) -> str | None:
    """Say what a score by `score_model: v1` is made of (recall.md); None where the trace does not tell."""
    if node is None or record.score_model != "v1":
        return None
    alpha = record.config["alpha"]
    ways: list[tuple[float, str]] = []
    if "structured" in node.legs:
        ways.append((node.score, "it satisfies the filter, or is a seed"))
    if "semantic" in node.legs and node.similarity is not None:
        ways.append(_fused(alpha, node.similarity, NO_DECAY, "found directly"))
    if node.reached is not None:
        walk = f"{counted(node.reached.hops, 'hop')} away"
        if node.reached.similarity is None:
            ways.append((node.reached.decay, f"decay {node.reached.decay:.4f}, {walk}"))
        else:
            ways.append(_fused(alpha, node.reached.similarity, node.reached.decay, walk))
    if not ways:
        return None
    _, said = min(ways, key=lambda way: abs(way[0] - node.score))
    return f"Its score of {node.score:.4f}: {said}."


def _fused(alpha: float, similarity: float, decay: float, how: str) -> tuple[float, str]:
    said = f"{alpha:.2f} × similarity {similarity:.4f} + {1 - alpha:.2f} × decay {decay:.4f}, {how}"
    return fuse(similarity, decay, alpha), said
