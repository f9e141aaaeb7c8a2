"""Which terms of the hits are searched for once more. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.recall.v2.bm25 import Corpus, Ints, contributions, idf
from planner.recall.v2.features import Hit
from planner.recall.v2.question import Question
from planner.recall.v2.texts import Texts


def feedback(
    texts: Texts,
    hits: Sequence[Hit],
    question: Question,
    counts: Mapping[int, int],
    corpus: Corpus,
    limit: int,
) -> tuple[Ints, Ints]:
    """Return the terms that weigh most in the hits, apart from the question's, and their weights."""
    asked = set(question.terms.tolist())
    mass: dict[int, int] = {}
    for hit in hits:
        at = texts.at[hit.node_id]
        terms, frequency = texts.frequencies_of(at)
        scores = contributions(frequency[None, :], texts.lengths[[at]], corpus)[0]
        share = int(np.rint(hit.weight * 256.0))
        for term, score in zip(terms.tolist(), scores.tolist(), strict=True):
            if term not in asked and term in counts:
                mass[term] = mass.get(term, 0) + share * score * idf(counts[term], corpus.nodes)
    best = sorted((term for term in mass if mass[term] > 0), key=lambda term: (-mass[term], term))[:limit]
    if not best:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    top = mass[best[0]]
    weighed = [(term, (mass[term] * 256 + top // 2) // top) for term in best]
    weights = [weight * idf(counts[term], corpus.nodes) for term, weight in weighed]
    return np.array(best, np.int64), np.array(weights, np.int64)
