"""What entered, left or moved between two plans, and why; pure, from the two traces alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from planner.errors import RequestError
from planner.trace.record import Record
from planner.types import Outcome, SpanRef, Verdict


class Change(StrEnum):
    """What became of a span from the first plan to the second."""

    ENTERED = "entered"
    LEFT = "left"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Changed:
    """One span that is selected in one plan only, or at another place in both; places count from 0.

    `reasons` begin with the stage at which it fell in the plan that lacks it: an outcome, `cut_max_spans`,
    `cut_min_score` or `absent_from_pool`; then come the figures that differ: score, kind, weight, tokens,
    budget, cap, dedup_overlap. `others` stands for none of these: what else was packed decided.
    """

    ref: SpanRef
    change: Change
    place: tuple[int | None, int | None]
    score: tuple[float | None, float | None]
    weight: tuple[float | None, float | None]
    tokens: tuple[int | None, int | None]
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON data; of each pair the first is of the first plan."""
        return {
            "ref": str(self.ref),
            "change": self.change.value,
            "reasons": list(self.reasons),
            **{name: list(getattr(self, name)) for name in ("place", "score", "weight", "tokens")},
        }


@dataclass(frozen=True, slots=True)
class Diff:
    """Two plans of one scope compared: figures, request fields and settings that differ, then spans."""

    a: str
    b: str
    same_plan: bool
    same_pool: bool
    figures: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    request: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    config: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    changes: tuple[Changed, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        differences = {name: _listed(getattr(self, name)) for name in ("figures", "request", "config")}
        return {
            "a": self.a,
            "b": self.b,
            "same_plan": self.same_plan,
            "same_pool": self.same_pool,
            **differences,
            "changes": [change.to_dict() for change in self.changes],
        }


def diff(a: Record, b: Record) -> Diff:
    """Compare two plans. Raises RequestError where their scopes differ or one failed before it had a pool."""
    if a.ref.scope != b.ref.scope:
        raise RequestError(
            f"{a.ref} and {b.ref} are of different scopes; only plans of one scope can be compared",
            field="plan",
        )
    for record in (a, b):
        if record.plan_hash is None:
            raise RequestError(f"{record.ref} failed before it had a pool; there is nothing to compare")
    return Diff(
        a=str(a.ref),
        b=str(b.ref),
        same_plan=a.plan_hash == b.plan_hash,
        same_pool=a.pool_hash == b.pool_hash,
        figures=differing(_figures(a), _figures(b)),
        request=differing(a.request, b.request),
        config=differing(a.config, b.config),
        changes=changes(a, b),
    )


def changes(a: Record, b: Record) -> tuple[Changed, ...]:
    """Return the spans that entered, left or moved, in the order of the second plan, then of the first."""
    before, after = _verdicts(a), _verdicts(b)
    chosen = {v.candidate.ref: v for v in (*b.selection.selected, *a.selection.selected)}
    found = (_changed(ref, before.get(ref), after.get(ref), a, b) for ref in chosen)
    return tuple(change for change in found if change is not None)


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what two mappings say differently, by key; None stands for nothing."""
    return {k: (a.get(k), b.get(k)) for k in dict.fromkeys((*a, *b)) if a.get(k) != b.get(k)}


def _changed(ref: SpanRef, old: Verdict | None, new: Verdict | None, a: Record, b: Record) -> Changed | None:
    places = (old.order if old else None, new.order if new else None)
    if places[0] == places[1]:
        return None
    change = Change.ENTERED if places[0] is None else Change.LEFT if places[1] is None else Change.MOVED
    lacking = {Change.ENTERED: (a, old), Change.LEFT: (b, new)}.get(change)
    reasons = [] if lacking is None else [_stage(ref, *lacking)]
    if old is not None and new is not None:
        reasons += _figures_that_differ(old, new)
    if lacking is not None and lacking[1] is not None:
        reasons += _limits_that_differ(lacking[1].outcome, a, b)
    if not reasons or (len(reasons) == 1 and reasons[0] in _BY_OTHERS):
        reasons.append("others")
    return Changed(
        ref,
        change,
        places,
        score=(old.candidate.score if old else None, new.candidate.score if new else None),
        weight=(old.weight if old else None, new.weight if new else None),
        tokens=(old.candidate.tokens if old else None, new.candidate.tokens if new else None),
        reasons=tuple(reasons),
    )


def _stage(ref: SpanRef, lacking: Record, verdict: Verdict | None) -> str:
    if verdict is not None:
        return verdict.outcome.value
    cuts = (name for name, items in lacking.cuts.items() for cut, _ in items if cut == str(ref))
    name = next(cuts, None)
    return f"cut_{name}" if name else "absent_from_pool"


def _figures_that_differ(old: Verdict, new: Verdict) -> Iterator[str]:
    was, now = old.candidate, new.candidate
    if was.score != now.score:
        yield "score"
    if was.kind != now.kind:
        yield "kind"
    if old.weight != new.weight and (was.score, was.kind) == (now.score, now.kind):
        yield "weight"
    if was.tokens != now.tokens:
        yield "tokens"


def _limits_that_differ(outcome: Outcome, a: Record, b: Record) -> Iterator[str]:
    was, now = a.selection.budget, b.selection.budget
    if outcome in (Outcome.OVER_BUDGET, Outcome.UNPACKABLE) and was.budget != now.budget:
        yield "budget"
    if outcome in (Outcome.OVER_SOURCE_CAP, Outcome.UNPACKABLE) and was.cap != now.cap:
        yield "cap"
    if outcome is Outcome.DUPLICATE and a.policy.dedup_overlap != b.policy.dedup_overlap:
        yield "dedup_overlap"


_BY_OTHERS = frozenset({Outcome.OVER_BUDGET.value, Outcome.OVER_SOURCE_CAP.value, Outcome.DUPLICATE.value})
"""The outcomes that depend on what else was packed."""


def _verdicts(record: Record) -> dict[SpanRef, Verdict]:
    return {v.candidate.ref: v for v in record.selection.verdicts}


def _figures(record: Record) -> dict[str, Any]:
    selection = record.selection
    budget = selection.budget
    limits = {"budget": budget.budget, "cap": budget.cap, "counter": budget.counter}
    models = {"plan_model": record.policy.plan_model, "score_model": record.score_model}
    stats = {name: figure for name, figure in selection.stats.items() if name != "budget_requested"}
    return {
        "outcome": record.outcome,
        "as_of": record.as_of,
        **models,
        **limits,
        "used": selection.used,
        **stats,
    }


def _listed(pairs: Mapping[str, tuple[Any, Any]]) -> dict[str, list[Any]]:
    return {name: list(pair) for name, pair in pairs.items()}
