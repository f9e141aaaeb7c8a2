"""The nouns of `why`: what is asked about, the stages at which it can have fallen, and the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from planner.selection.counterfactual import Counterfactual
from planner.types import PlanRef, SpanRef

Facts = dict[str, Any]


class Stage(StrEnum):
    """The stages of a plan in their order; what is asked about is told by the first at which it fell."""

    UNKNOWN = "unknown"
    FILTERED_BY_MUST = "filtered_by_must"
    OUTSIDE_WINDOW = "outside_window"
    NOT_CURRENT = "not_current"
    BELOW_TOP_K = "below_top_k"
    BEYOND_EXPANSION = "beyond_expansion"
    NO_PROVENANCE = "no_provenance"
    CUT_MAX_NODES = "cut_max_nodes"
    CUT_MIN_SCORE = "cut_min_score"
    CUT_MAX_SPANS = "cut_max_spans"
    DUPLICATE = "duplicate"
    UNPACKABLE = "unpackable"
    OVER_BUDGET = "over_budget"
    OVER_SOURCE_CAP = "over_source_cap"
    UNSLICEABLE = "unsliceable"
    NOT_DELIVERED = "not_delivered"
    SELECTED = "selected"


DEPTH: Mapping[Stage, int] = {stage: depth for depth, stage in enumerate(Stage)}
"""How far a stage is along the way into a plan."""

BY_BUDGET = frozenset({Stage.UNPACKABLE, Stage.OVER_BUDGET, Stage.OVER_SOURCE_CAP})
"""The stages that another budget, or another share of it for one source, can change."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """One version of a node that has the span among its provenance, judged by the request's filters.

    `restricted_in` says that `must` and the window both let it pass.
    """

    node_id: str
    tx_from: int
    tx_to: int
    passes_must: bool
    restricted_in: bool
    matches: bool


@dataclass(frozen=True, slots=True)
class Target:
    """One thing asked about: a span, or a node without provenance (`ref` None), and what carries it.

    `asked` is the span that was named where an equal text in another version stands for it; `erased_tx` says
    when its text was erased, `source_tx` which version of its source was the newest as of the plan.
    """

    ref: SpanRef | None
    node_id: str | None = None
    asked: SpanRef | None = None
    carriers: tuple[Carrier, ...] = ()
    erased_tx: int | None = None
    source_tx: int | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A node's exact similarity to the question, and its place from 1 among all that could be found."""

    similarity: float
    rank: int
    of: int


@dataclass(frozen=True, slots=True)
class Missed:
    """What is known of nodes that recall did not find: their ranks, and paths that no `fanout` would bound.

    A path is keyed by its last node and by whether it starts from a root.
    """

    ranks: Mapping[str, Ranked] = field(default_factory=dict)
    paths: Mapping[tuple[str, bool], Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fate:
    """The stage at which something fell, or that it was selected, with the figures that decided it."""

    stage: Stage
    node_id: str | None = None
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one span, or of one node without provenance (`ref` None); both None: unknown.

    The two `sufficient_…` values suffice each alone and all else equal; they are not minimal.
    """

    ref: SpanRef | None
    fate: Fate
    sentence: str
    sufficient: Counterfactual = field(default_factory=Counterfactual)

    @property
    def stage(self) -> Stage:
        """The first stage at which it fell, or `selected`."""
        return self.fate.stage

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON data, its figures beside the stage."""
        return {
            "ref": None if self.ref is None else str(self.ref),
            "node_id": self.fate.node_id,
            "stage": self.stage.value,
            "sentence": self.sentence,
            **self.fate.facts,
            "sufficient_budget": self.sufficient.sufficient_budget,
            "sufficient_max_frac": self.sufficient.sufficient_max_frac,
        }


@dataclass(frozen=True, slots=True)
class Why:
    """The answer to `why`: best stage first. `stages` counts all answers, `more` those that are not listed.

    `resolved_as` is span, node, source, phrase, or None where nothing of the scope is meant, or where the
    plan failed before it had a pool.
    """

    plan: PlanRef
    what: str
    resolved_as: str | None
    outcome: str
    sentence: str
    answers: tuple[Answer, ...] = ()
    stages: Mapping[str, int] = field(default_factory=dict)
    more: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        return {
            "plan": str(self.plan),
            "what": self.what,
            "resolved_as": self.resolved_as,
            "outcome": self.outcome,
            "sentence": self.sentence,
            "stages": dict(self.stages),
            "answers": [answer.to_dict() for answer in self.answers],
            "more": self.more,
        }
