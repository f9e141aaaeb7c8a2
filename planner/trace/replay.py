"""Replay: Phase B again from the stored candidates must give the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.errors import ReplayMismatch
from planner.hashing import plan_hash, pool_hash
from planner.selection.select import select
from planner.trace.record import Record
from planner.types import Selection


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay that came out the same."""

    plan: str
    plan_hash: str
    pool_hash: str
    candidates: int
    selected: int

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON data."""
        return {
            "plan": self.plan,
            "identical": True,
            "plan_hash": self.plan_hash,
            "pool_hash": self.pool_hash,
            "candidates": self.candidates,
            "selected": self.selected,
        }


def replayed(record: Record) -> Replay:
    """Decide a recorded plan again and compare every figure and both hashes.

    Raises ReplayMismatch naming the first difference, or that a failed plan has nothing to replay.
    """
    if record.plan_hash is None or record.pool_hash is None:
        raise ReplayMismatch(f"{record.ref} failed before it had a pool; there is nothing to replay")
    stored = record.selection
    again = select(
        [v.candidate for v in stored.verdicts],
        record.policy,
        stored.budget,
        kind_missing=stored.stats["kind_missing"],
        merged=stored.stats["merged"],
    )
    difference = first_difference(stored, again)
    models = {"plan_model": record.policy.plan_model, "score_model": record.score_model}
    hashes = plan_hash(again, **models), pool_hash(again, **models)
    if difference is None and hashes != (record.plan_hash, record.pool_hash):
        difference = "every figure is equal, but a stored hash is not the hash of the stored rows"
    if difference is not None:
        raise ReplayMismatch(f"{record.ref}: {difference}", plan=str(record.ref), difference=difference)
    return Replay(str(record.ref), *hashes, len(again.verdicts), len(again.selected))


def first_difference(stored: Selection, again: Selection) -> str | None:
    """Return the first difference between two selections in words, None where there is none."""
    for rank, (old, new) in enumerate(zip(stored.verdicts, again.verdicts, strict=True)):
        if old.candidate.ref != new.candidate.ref:
            return f"rank {rank} was {old.candidate.ref}, is {new.candidate.ref}"
        for name in ("weight", "outcome", "order", "duplicate_of"):
            was, now = getattr(old, name), getattr(new, name)
            if was != now:
                return f"{name} of {old.candidate.ref} was {was}, is {now}"
    if stored.used != again.used:
        return f"used was {stored.used}, is {again.used}"
    changed = next((name for name, value in again.stats.items() if stored.stats[name] != value), None)
    return f"{changed} was {stored.stats[changed]}, is {again.stats[changed]}" if changed else None
