"""What packing a pool in rank order finds: by its scores, and by what people use today.

The others are those of ranking.md: cosine, BM25, reciprocal rank fusion (Cormack et al. 2009, k = 60), and
the min-max sum of both legs, 0.7 s + 0.3 max(previous, next) inside a source. A leg is its 200 best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.evaluation import metrics
from planner.evaluation.fit.loss import Floats
from planner.evaluation.fit.pools import Pool
from planner.recall.v2.bm25 import min_max
from planner.recall.v2.features import BEST
from planner.selection.pack import pack
from planner.selection.pool import rank_pool
from planner.types import Budget, Candidate, SelectionPolicy

OWN = "score_model v2"


def fused(pool: Pool) -> Floats:
    """Return the sum over both legs of 1 / (60 + rank)."""
    total = np.zeros(len(pool.candidates))
    for leg in (pool.similarity, pool.bm25):
        order = np.argsort(-leg, kind="stable")[:BEST]
        ranks = np.arange(1, len(order) + 1)
        total[order] += np.where(leg[order] > 0, 1.0 / (60.0 + ranks), 0.0)
    return total


def summed(pool: Pool) -> Floats:
    """Return the min-max sum of both legs, spread to neighbours."""
    cosine, words = pool.similarity, pool.bm25
    least = float(cosine[cosine > 0].min(initial=1.0))
    s = np.append(_scaled(cosine, least) + _scaled(words, 0.0), 0.0)
    spread: Floats = 0.7 * s[:-1] + 0.3 * np.maximum(s[pool.before], s[pool.after])
    return spread


OTHERS: Mapping[str, Callable[[Pool], Floats]] = {
    "cosine": lambda pool: pool.similarity,
    "BM25": lambda pool: pool.bm25,
    "rank fusion": fused,
    "min-max sum + neighbours": summed,
}
"""What a score is measured against: none of them is above 0 for a candidate that it does not rank."""


@dataclass
class Tally:
    """Counts, by ranking and budget, what pools' evidence is found."""

    policy: SelectionPolicy
    budgets: Sequence[Budget]
    _seen: dict[str, list[list[tuple[int, int]]]] = field(default_factory=dict)

    def add(self, pool: Pool) -> None:
        """Pack a pool by its scores and by the others."""
        self._count(OWN, pool, pool.candidates)
        for name, score in OTHERS.items():
            ranked = zip(pool.candidates, score(pool).tolist(), strict=True)
            self._count(name, pool, [replace(c, score=value) for c, value in ranked if value > 0])

    def figures(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return evidence recall and all-evidence, from 0 to 1, by ranking and budget."""
        return {
            name: {
                str(budget.budget): {
                    "evidence_recall": _mean(found / items for found, items in asked),
                    "all_evidence": _mean(found == items for found, items in asked),
                }
                for budget, asked in zip(self.budgets, zip(*rows, strict=True), strict=True)
            }
            for name, rows in self._seen.items()
        }

    def _count(self, name: str, pool: Pool, candidates: Sequence[Candidate]) -> None:
        ranked = rank_pool(candidates, self.policy)
        row = []
        for budget in self.budgets:
            chosen = [ranked.candidates[i].ref for i in pack(ranked, budget).selected]
            row.append((metrics.hits(pool.items, chosen), len(pool.items)))
        self._seen.setdefault(name, []).append(row)


def _scaled(leg: Floats, least: float) -> Floats:
    """Return (x - 200th best) / (best - 200th best) of a leg, not below 0; `least` where it has fewer."""
    ranked = np.sort(leg)[::-1]
    floor = ranked[BEST - 1] if np.count_nonzero(leg) >= BEST else least
    return min_max(leg, float(leg.max(initial=0.0)), float(floor))


def _mean(values: Iterable[float]) -> float:
    return round(metrics.mean(values), 6)
