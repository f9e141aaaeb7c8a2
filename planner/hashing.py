"""Canonical bytes of a plan and of its pool, and their hashes (selection.md, "Canonical bytes").

Length-prefixed and little-endian, no decimal text: the same bytes on every machine and Python.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from blake3 import blake3

from planner.types import Selection, Verdict

PLAN_TAG: Final = b"evidence-plan\x00v1\x00"
POOL_TAG: Final = b"evidence-pool\x00v1\x00"

STATS: Final = (
    "budget_requested",
    "budget_stranded_by_cap",
    "candidates",
    "selected",
    "duplicate",
    "unpackable",
    "over_budget",
    "over_source_cap",
    "unsliceable",
    "kind_missing",
    "merged",
    "token_estimate",
)
"""The hashed figures, in the order in which they are hashed."""

_CLASS_CODE: Final = {"truth": b"\x00", "cache": b"\x01"}
_u32 = Struct("<I").pack
_u64 = Struct("<Q").pack
_range = Struct("<qQQ").pack
_weight_and_tokens = Struct("<dQ").pack


def text_hash(text: bytes) -> bytes:
    """Return the BLAKE3-256 of a text's UTF-8 bytes, 32 bytes."""
    return blake3(text).digest()


def plan_hash(selection: Selection, *, plan_model: str, score_model: str) -> str:
    """Return the BLAKE3-256 of a plan's canonical bytes, as 64 lower-case hex digits."""
    return blake3(plan_bytes(selection, plan_model=plan_model, score_model=score_model)).hexdigest()


def pool_hash(selection: Selection, *, plan_model: str, score_model: str) -> str:
    """Return the BLAKE3-256 of a pool's canonical bytes, as 64 lower-case hex digits."""
    return blake3(pool_bytes(selection, plan_model=plan_model, score_model=score_model)).hexdigest()


def plan_bytes(selection: Selection, *, plan_model: str, score_model: str) -> bytes:
    """Return the canonical bytes of what was selected, in selection order."""
    head = _header(selection, plan_model, score_model)
    entries = [_entry(verdict) for verdict in selection.selected]
    return b"".join((PLAN_TAG, head, _u32(len(entries)), *entries, _stats(selection)))


def pool_bytes(selection: Selection, *, plan_model: str, score_model: str) -> bytes:
    """Return the canonical bytes of all candidates, in rank order, each followed by its outcome."""
    head = _header(selection, plan_model, score_model)
    entries = [_entry(verdict) + _str(verdict.outcome.value) for verdict in selection.verdicts]
    return b"".join((POOL_TAG, head, _u32(len(entries)), *entries, _stats(selection)))


def _header(selection: Selection, plan_model: str, score_model: str) -> bytes:
    budget = selection.budget
    names = b"".join(map(_str, (plan_model, score_model, budget.counter)))
    return names + b"".join(map(_u64, (budget.budget, selection.used, budget.cap)))


def _entry(verdict: Verdict) -> bytes:
    candidate = verdict.candidate
    return b"".join(
        (
            _str(candidate.source_id),
            _range(candidate.version_tx, candidate.start, candidate.end),
            _str(candidate.kind),
            _CLASS_CODE[candidate.source_class],
            _weight_and_tokens(verdict.weight, candidate.tokens),
            candidate.text_hash,
        )
    )


def _stats(selection: Selection) -> bytes:
    figures = (_str(name) + _u64(selection.stats[name]) for name in STATS)
    return b"".join((_u32(len(STATS)), *figures))


def _str(text: str) -> bytes:
    data = text.encode()
    return _u32(len(data)) + data
