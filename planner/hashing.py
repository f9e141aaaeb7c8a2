"""Canonical bytes of a plan, its pool and a delivery, and their hashes (selection.md, "Canonical bytes").

Length-prefixed and little-endian, no decimal text: the same bytes on every machine and Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from blake3 import blake3

from planner.types import Hit, Selection, Verdict

PLAN_TAG: Final = b"evidence-plan\x00v1\x00"
POOL_TAG: Final = b"evidence-pool\x00v1\x00"
DELIVERY_TAG: Final = b"evidence-delivery\x00v1\x00"
RESULTS_TAG: Final = b"evidence-results\x00v1\x00"

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
_f64 = Struct("<d").pack
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


def delivery_hash(
    text: str,
    *,
    framing_version: str,
    unit: str,
    counter: str,
    budget: int,
    neighbours: int,
    on_misfit: str,
    max_frac: float | None,
    plan_hash: str | None,
) -> str:
    """Return the BLAKE3-256 of a bundle's text and of what decided it, as 64 lower-case hex digits.

    A missing `max_frac` counts as 0, which none can be, a missing plan hash as empty.
    """
    words = b"".join(map(_str, (framing_version, unit, counter, on_misfit, plan_hash or "")))
    numbers = _u64(budget) + _u64(neighbours) + _f64(max_frac or 0.0)
    data = text.encode()
    return blake3(b"".join((DELIVERY_TAG, words, numbers, _u64(len(data)), data))).hexdigest()


def results_bytes(hits: Sequence[Hit]) -> bytes:
    """Return the canonical bytes of ranked results that no plan selected: what a tag is derived from."""
    entries = (_str(hit.ref.source_id) + _range(*hit.ref[1:]) + hit.text_hash for hit in hits)
    return b"".join((RESULTS_TAG, _u32(len(hits)), *entries))


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
