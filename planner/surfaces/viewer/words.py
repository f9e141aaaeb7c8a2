"""What the figures of a plan mean, for those who did not write the specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from planner.types import Outcome

V = TypeVar("V")

FATES: Mapping[Outcome, str] = {
    Outcome.SELECTED: "in the plan",
    Outcome.DUPLICATE: "repeats a better span of the same source",
    Outcome.UNPACKABLE: "larger than the whole budget",
    Outcome.OVER_BUDGET: "did not fit what was left of the budget",
    Outcome.OVER_SOURCE_CAP: "its source would have had more than its share",
    Outcome.UNSLICEABLE: "its text cannot be cut out of its source any more",
}
"""What each outcome of a candidate says."""

STATS: Mapping[str, str] = {
    "budget_requested": "tokens that were asked for",
    "budget_stranded_by_cap": "tokens left unused because the share of one source stood in the way",
    "candidates": "spans that recall brought in",
    "selected": "of them in the plan",
    "duplicate": "of them repeat a better one",
    "unpackable": "of them larger than the whole budget",
    "over_budget": "of them did not fit what was left",
    "over_source_cap": "of them would have exceeded the share of one source",
    "unsliceable": "of them could not be cut out of their source",
    "kind_missing": "spans without a row in the span ledger, taken as body text",
    "merged": "times a span came by more than one node, and counts once",
    "token_estimate": "1 where tokens are an estimate, so that a tenth of the budget is kept back",
    "optimality_gap_ppm": "how far the selected weight may be below the best possible, in millionths",
}
"""What each statistic of a plan counts."""

STAGES: Mapping[str, str] = {
    "scope": "look at the scope",
    "embed": "embed the question",
    "recall": "find candidates",
    "rescore": "weigh again",
    "count": "count tokens",
    "select": "select",
    "text": "read the texts",
    "trace": "write the trace",
    "plan": "read the plan",
    "shelf": "read what surrounds it",
    "deliver": "pack the bundle",
}
"""What each timed stage does."""

LEGS: Mapping[str, str] = {
    "structured": "by the filter `match`, or as a seed",
    "semantic": "by similarity to the question",
    "expansion": "by walking from a better node",
    "lexical": "by words of the question",
    "neighbours": "beside a hit",
    "links": "linked with a hit",
    "mentions": "named by a hit",
}
"""How a node was found."""

PHASES: Mapping[str, tuple[str, ...]] = {
    "known": ("unknown",),
    "allowed": ("filtered_by_must", "outside_window", "not_current"),
    "found": ("below_top_k", "beyond_expansion", "no_provenance"),
    "kept": ("cut_max_nodes", "cut_min_score", "cut_max_spans"),
    "packed": ("duplicate", "unpackable", "over_budget", "over_source_cap", "unsliceable"),
    "delivered": ("not_delivered",),
}
"""The stages of `why` in the phases in which they come; whatever is in none passed them all."""


def in_order(found: Mapping[str, V], names: Mapping[str, str]) -> dict[str, V]:
    """Return figures in the order in which their names are told here; the database keeps them in its own."""
    return {**{name: found[name] for name in names if name in found}, **found}


def phases(stage: str) -> list[tuple[str, str]]:
    """Return the phases, each with what became of something of this stage: `passed`, `fell`, `not` there."""
    became, out = "passed", []
    for phase, stages in PHASES.items():
        here = "fell" if stage in stages else became
        out.append((phase, here))
        became = "not" if here == "fell" else here
    return out
