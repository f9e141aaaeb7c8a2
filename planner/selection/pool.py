"""A pool made ready for packing: what does not depend on the budget, worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.selection.dedup import find_duplicates
from planner.selection.weigh import Floats, Integers, weigh
from planner.types import Candidate, SelectionPolicy


@dataclass(frozen=True, slots=True)
class RankedPool:
    """Candidates in rank order, deduplicated. Positions are ranks from 0; plain lists, for plain loops.

    `sources` are numbers from 0 below `source_count`. `duplicate_of` holds the kept position that each
    one duplicates, -1 where it is kept. `density_order` are the kept positions by
    `(w / max(1, tokens) desc, rank)`, `packing_order` the same in the order of the plan model.
    `unsliceable` come by key, after all others, and take no part.
    """

    candidates: list[Candidate]
    weights: list[float]
    tokens: list[int]
    sources: list[int]
    source_count: int
    duplicate_of: list[int]
    density_order: list[int]
    packing_order: list[int]
    unsliceable: list[Candidate]
    unsliceable_weights: list[float]


def rank_pool(candidates: Sequence[Candidate], policy: SelectionPolicy) -> RankedPool:
    """Check, weigh, rank and deduplicate a pool. Raises BadCandidate."""
    everything = weigh(candidates, policy)
    sliceable = np.array([c.sliceable for c in candidates], dtype=np.bool_)[everything.row]
    columns, left_out = everything.where(sliceable), everything.where(~sliceable)
    rank_order = columns.rank_order()
    rank = np.empty_like(rank_order)
    rank[rank_order] = np.arange(len(rank_order))
    original = find_duplicates(columns, rank_order, policy.dedup_overlap)[rank_order]
    duplicate_of = np.where(original < 0, -1, rank[original])
    weight, tokens = columns.weight[rank_order], columns.tokens[rank_order]
    density_order = np.argsort(-weight / np.maximum(tokens, 1), kind="stable")
    packing_order = density_order if policy.plan_model == "v1" else np.arange(len(rank_order))
    kept = duplicate_of < 0
    return RankedPool(
        candidates=_taken(candidates, columns.row[rank_order], weight),
        weights=weight.tolist(),
        tokens=tokens.tolist(),
        sources=columns.source[rank_order].tolist(),
        source_count=int(everything.source.max(initial=-1)) + 1,
        duplicate_of=duplicate_of.tolist(),
        density_order=density_order[kept[density_order]].tolist(),
        packing_order=packing_order[kept[packing_order]].tolist(),
        unsliceable=_taken(candidates, left_out.row, left_out.weight),
        unsliceable_weights=left_out.weight.tolist(),
    )


def _taken(candidates: Sequence[Candidate], rows: Integers, weight: Floats) -> list[Candidate]:
    """Return the candidates of these rows, a negative zero among their scores made positive."""
    taken = list(map(candidates.__getitem__, rows.tolist()))
    for i in np.flatnonzero(weight == 0.0).tolist():
        if taken[i].score == 0.0:
            taken[i] = replace(taken[i], score=0.0)
    return taken
