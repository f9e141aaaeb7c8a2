"""What a recorded plan would have been under another configuration: Phase B over its stored pool. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.errors import RequestError
from planner.hashing import plan_hash
from planner.selection.budget import MAX_REQUEST, at_max_frac, at_request
from planner.selection.select import select
from planner.trace.record import Record, policy_from
from planner.types import SpanRef

BUDGET = "budget"
"""The one change that is not a setting: the requested tokens."""

CHANGEABLE = ("kind_priors", "cache_discount", "dedup_overlap", "max_frac_per_source", "plan_model", BUDGET)
"""What Phase B obeys, so that a stored pool can be decided under other values."""


@dataclass(frozen=True, slots=True)
class Reconsidered:
    """One plan, as it was and as it would have been; pairs are (then, would be), in tokens and hashes."""

    plan: str
    used: tuple[int, int]
    plan_hash: tuple[str, str]
    gained: tuple[SpanRef, ...]
    lost: tuple[SpanRef, ...]

    @property
    def changed(self) -> bool:
        """Whether other evidence, or the same in another order, would have been selected."""
        return self.plan_hash[0] != self.plan_hash[1]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON data."""
        return {
            "plan": self.plan,
            "used": list(self.used),
            "plan_hash": list(self.plan_hash),
            "gained": [str(ref) for ref in self.gained],
            "lost": [str(ref) for ref in self.lost],
        }


@dataclass
class WhatIf:
    """The sum over many plans; only the changed ones are kept, of each what it gained and lost, no pool.

    `emptied` are plans that had evidence and would have none.
    """

    changes: Mapping[str, Any]
    plans: int = 0
    used: int = 0
    would_use: int = 0
    gained: int = 0
    lost: int = 0
    emptied: int = 0
    changed: list[Reconsidered] = field(default_factory=list)

    @property
    def tokens_saved(self) -> int:
        """Tokens of evidence less over all plans; negative where it would be more."""
        return self.used - self.would_use

    def add(self, plan: Reconsidered) -> None:
        """Take one more plan into account."""
        self.plans += 1
        self.used += plan.used[0]
        self.would_use += plan.used[1]
        self.gained += len(plan.gained)
        self.lost += len(plan.lost)
        self.emptied += plan.used[0] > 0 and plan.used[1] == 0
        if plan.changed:
            self.changed.append(plan)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        return {
            "set": dict(self.changes),
            "plans": self.plans,
            "plans_changed": len(self.changed),
            "used": self.used,
            "would_use": self.would_use,
            "tokens_saved": self.tokens_saved,
            "gained": self.gained,
            "lost": self.lost,
            "emptied": self.emptied,
            "changed": [plan.to_dict() for plan in self.changed],
        }


def checked_changes(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the changes. Raises RequestError for none, what Phase B does not obey, and a bad budget."""
    if not changes:
        raise RequestError(f"change something: {', '.join(CHANGEABLE)}", field="set")
    for name in changes:
        if name not in CHANGEABLE:
            raise RequestError(
                f"{name!r} cannot be changed for a pool that is there; what can is {', '.join(CHANGEABLE)}",
                field="set",
            )
    budget = changes.get(BUDGET, 1)
    if not isinstance(budget, int) or isinstance(budget, bool) or not 1 <= budget <= MAX_REQUEST:
        raise RequestError(f"budget = {budget!r}: ask for 1 to {MAX_REQUEST} tokens", field="set")
    return changes


def reconsidered(record: Record, changes: Mapping[str, Any]) -> Reconsidered:
    """Decide a recorded pool again under its configuration with `changes`; kind priors are merged by kind.

    Ceilings hold as they were recorded. Raises RequestError for a plan that failed before it had a pool.
    """
    if record.plan_hash is None:
        raise RequestError(f"{record.ref} failed before it had a pool; there is nothing to decide again")
    then, config = record.selection, {**record.config, **changes}
    config["kind_priors"] = {**record.config["kind_priors"], **changes.get("kind_priors", {})}
    policy = policy_from(config, changes.get("plan_model", record.policy.plan_model))
    budget = at_max_frac(then.budget, config["max_frac_per_source"])
    would = select(
        [v.candidate for v in then.verdicts],
        policy,
        at_request(budget, changes[BUDGET]) if BUDGET in changes else budget,
        kind_missing=then.stats["kind_missing"],
        merged=then.stats["merged"],
    )
    had, has = ([v.candidate.ref for v in selection.selected] for selection in (then, would))
    hashed = plan_hash(would, plan_model=policy.plan_model, score_model=record.score_model)
    return Reconsidered(
        plan=str(record.ref),
        used=(then.used, would.used),
        plan_hash=(record.plan_hash, hashed),
        gained=tuple(ref for ref in has if ref not in set(had)),
        lost=tuple(ref for ref in had if ref not in set(has)),
    )
