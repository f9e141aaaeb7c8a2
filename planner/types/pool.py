"""What recall finds and selection decides: node, candidate, budget, verdict, selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from planner.types.refs import NO_TEXT_HASH, SourceClass, SpanRef


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
