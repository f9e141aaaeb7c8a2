"""Selection written down straight from the page, in O(n²), to compare the real one with."""

from __future__ import annotations

from collections.abc import Sequence

from planner.types import Budget, Candidate, SelectionPolicy, SpanRef

Key = tuple[bytes, int, int, int]
Fate = tuple[str, SpanRef | None]


def key(candidate: Candidate) -> Key:
    return candidate.source_id.encode(), candidate.version_tx, candidate.start, candidate.end


def weight(candidate: Candidate, policy: SelectionPolicy) -> float:
    weighed = candidate.score * policy.kind_priors[candidate.kind]
    return abs(weighed * policy.cache_discount if candidate.source_class == "cache" else weighed)


def overlap(a: Candidate, b: Candidate) -> float:
    if (a.source_id, a.version_tx) != (b.source_id, b.version_tx):
        return 0.0
    shared = max(0, min(a.end, b.end) - max(a.start, b.start))
    return shared / min(a.end - a.start, b.end - b.start)


def repeats(a: Candidate, b: Candidate, policy: SelectionPolicy) -> bool:
    return overlap(a, b) > policy.dedup_overlap or overlap(a, b) == 1.0


def ranked(pool: Sequence[Candidate], policy: SelectionPolicy) -> list[Candidate]:
    return sorted((c for c in pool if c.sliceable), key=lambda c: (-weight(c, policy), *key(c)))


def dedup(
    pool: Sequence[Candidate], policy: SelectionPolicy
) -> tuple[list[Candidate], dict[SpanRef, SpanRef]]:
    kept: list[Candidate] = []
    duplicates: dict[SpanRef, SpanRef] = {}
    for candidate in ranked(pool, policy):
        first = next((k for k in kept if repeats(candidate, k, policy)), None)
        if first is None:
            kept.append(candidate)
        else:
            duplicates[candidate.ref] = first.ref
    return kept, duplicates


def select(
    pool: Sequence[Candidate], policy: SelectionPolicy, budget: Budget
) -> tuple[dict[SpanRef, Fate], list[SpanRef]]:
    """Return the fate of every candidate and the selected ones in selection order."""
    kept, duplicates = dedup(pool, policy)
    fates: dict[SpanRef, Fate] = {c.ref: ("unsliceable", None) for c in pool if not c.sliceable}
    fates |= {ref: ("duplicate", original) for ref, original in duplicates.items()}
    if policy.plan_model == "v1":
        kept = sorted(kept, key=lambda c: -(weight(c, policy) / max(1, c.tokens)))
    used, used_by_source, selected = 0, dict.fromkeys((c.source_id for c in pool), 0), []
    for candidate in kept:
        tokens, source = candidate.tokens, candidate.source_id
        if tokens > budget.budget:
            outcome = "unpackable"
        elif used + tokens > budget.budget:
            outcome = "over_budget"
        elif used_by_source[source] + tokens > budget.cap:
            outcome = "over_source_cap"
        else:
            outcome = "selected"
            selected.append(candidate.ref)
            used += tokens
            used_by_source[source] += tokens
        fates[candidate.ref] = (outcome, None)
    return fates, selected
