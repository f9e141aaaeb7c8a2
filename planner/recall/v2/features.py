"""The terms of the score, each in 1/256 (ranking.md says what they are and why). Pure.

All sums are of integers; what is divided is divided once, so that no order of evaluation decides a bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from planner.lexical.packing import content, numbers, sequence
from planner.recall.v2.bm25 import Corpus, Floats, Ints, contributions, idf, min_max, on_grid
from planner.recall.v2.question import Question
from planner.recall.v2.texts import Texts

BEST = 200
"""The place in a leg whose score counts as nothing (min-max)."""


class Hit(NamedTuple):
    """One of the best nodes of the first stage, with its base score as a share of the best one's."""

    node_id: str
    weight: float


@dataclass(frozen=True)
class Links:
    """What the hits lead to.

    `named` are the nodes of sources that a hit's text names, with how many texts do; `edges` the nodes to
    which the caller's own edges lead, with their confidence. `feedback` weighs the terms of the hits, and
    `feedback_span` are the scores of the best and of the 200th by them.
    """

    hits: Sequence[Hit]
    named: Mapping[str, Mapping[str, int]]
    edges: Mapping[str, Mapping[str, float]]
    counts: Mapping[int, int]
    feedback: tuple[Ints, Ints]
    feedback_span: tuple[int, int]


@dataclass(frozen=True)
class Scorer:
    """Everything by which the texts in play are scored; `counts` are of terms, by number, in the scope."""

    question: Question
    corpus: Corpus
    texts: Texts
    cos: Mapping[str, float]
    lexical_span: tuple[int, int]
    title_share: Mapping[str, float]
    source_nodes: Mapping[str, str]

    @cached_property
    def counts(self) -> Ints:
        """How often each term of the question is in each text."""
        return self.texts.counts(self.question.terms)

    @cached_property
    def has(self) -> Ints:
        """Whether it is there: 1 or 0."""
        return np.minimum(self.counts, 1)

    @cached_property
    def bm(self) -> Floats:
        """BM25 of the question, min-max."""
        scores = contributions(self.counts, self.texts.lengths, self.corpus) @ self.question.idf
        return min_max(scores, *self.lexical_span)

    @cached_property
    def first(self) -> Floats:
        """The first stage: half the sum of both legs."""
        return (self._cos + self.bm) / 2.0

    @cached_property
    def _cos(self) -> Floats:
        sims = sorted(self.cos.values(), reverse=True)
        if not sims:
            return np.zeros(len(self.texts.of))
        mine = np.array([self.cos.get(text.node_id, 0.0) for text in self.texts.of])
        return min_max(mine, sims[0], sims[min(BEST, len(sims)) - 1])

    def base(self) -> dict[str, Ints]:
        """Return the terms that need no links, by name."""
        question, has = self.question, self.has
        none = np.zeros(len(self.texts.of))
        share = has @ question.idf / question.total
        before, after = self.texts.beside("before"), self.texts.beside("after")
        around = np.vstack((has, np.zeros((1, has.shape[1]), dtype=np.int64)))
        new = np.maximum(around[before], around[after]) * (1 - has)
        title = np.array([self.title_share.get(text.title or "", 0.0) for text in self.texts.of])
        found = {
            "cos": self._cos,
            "lex": np.maximum(0.0, 2.0 * self.bm - 1.0),
            "cov": share,
            "rarest": has[:, question.rarest].astype(np.float64) if len(question.terms) else none,
            "title": title,
            "titlefull": (title == 1.0).astype(np.float64),
            "pair": self._pair(),
            "prev": np.append(self.first, 0.0)[before],
            "nbnew": new @ question.idf / question.total,
            "spk": self._speakers(),
        }
        return {name: on_grid(values) for name, values in found.items()}

    def linked(self, links: Links) -> dict[str, Ints]:
        """Return the terms that the hits give, by name."""
        none = np.zeros(len(self.texts.of))
        mention, joint = none.copy(), none.copy()
        for hit in links.hits:
            mention = np.maximum(mention, hit.weight * self._mentioned(hit, links))
            joint = np.maximum(joint, self._joint(hit, links))
        terms, weights = links.feedback
        scores = contributions(self.texts.counts(terms), self.texts.lengths, self.corpus) @ weights
        prf = min_max(scores, *links.feedback_span)
        # A term common to many texts does not find any by itself, so that one may be above the best found.
        found = {"mention": mention, "prf": np.minimum(prf, 1.0), "joint": joint}
        return {name: on_grid(values) for name, values in found.items()}

    def _mentioned(self, hit: Hit, links: Links) -> Floats:
        named, edges = links.named[hit.node_id], links.edges[hit.node_id]
        out = np.zeros(len(self.texts.of))
        for i, text in enumerate(self.texts.of):
            times = named.get(self.source_nodes.get(text.source_id or "", ""), 0)
            if times:
                out[i] = (1.0 - self.title_share.get(text.title or "", 0.0)) / float(np.sqrt(float(times)))
            out[i] = max(out[i], edges.get(text.node_id, 0.0))
        return out

    def _joint(self, hit: Hit, links: Links) -> Floats:
        """Return the question's share that is new beside the hit, where rare terms of it are shared."""
        at = self.texts.at[hit.node_id]
        asked, limit = set(self.question.terms.tolist()), max(3, self.corpus.nodes // 30)
        rare = [
            term
            for term in self.texts.terms_of(at).tolist()
            if term not in asked and 1 < links.counts.get(term, 0) <= limit
        ]
        weights = np.array([idf(links.counts[term], self.corpus.nodes) for term in rare], dtype=np.int64)
        shared = np.minimum(self.texts.counts(np.array(rare, dtype=np.int64)), 1) @ weights
        shared[at] = 0
        new = (self.has * (1 - self.has[at])) @ self.question.idf / self.question.total
        kin = np.minimum(shared / (2.0 * idf(1, self.corpus.nodes)), 1.0)
        joint: Floats = kin * new
        return joint

    def _pair(self) -> Floats:
        question = self.question
        num, den = np.zeros(len(self.texts.of), dtype=np.int64), 0
        held = {text.title for text in self.texts.of if self.title_share.get(text.title or "", 0.0) > 0.0}
        titles = {title: numbers(sequence(title or "")) for title in held}
        for first, second in question.pairs:
            a, b = int(question.terms[first]), int(question.terms[second])
            weight = int(question.idf[first] + question.idf[second])
            titled = {t for t, seq in titles.items() if bool(((seq[:-1] == a) & (seq[1:] == b)).any())}
            there = self.texts.with_pair(a, b)
            if titled:
                there |= np.array([text.title in titled for text in self.texts.of])
            num += weight * there
            den += weight
        return num / (den or 1)

    def _speakers(self) -> Floats:
        """Return 1 where the question names the speaker, -1 where another who takes part in the talk."""
        together: dict[str, set[str]] = {}
        for text in self.texts.of:
            if text.speaker and text.source_id:
                together.setdefault(text.source_id, set()).add(text.speaker)
        everyone = {speaker for speakers in together.values() for speaker in speakers}
        named = {speaker for speaker in everyone if self.question.words & content(speaker)}
        partners: dict[str, set[str]] = {}
        for speakers in together.values():
            for speaker in speakers:
                partners.setdefault(speaker, set()).update(speakers)
        out = np.zeros(len(self.texts.of))
        for i, text in enumerate(self.texts.of):
            if text.speaker in named:
                out[i] = 1.0
            elif text.speaker and named & partners.get(text.speaker, set()):
                out[i] = -1.0
        return out


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
        terms = np.array([t for t in texts.terms_of(at).tolist() if t not in asked and t in counts], np.int64)
        scores = contributions(texts.counts(terms)[[at]], texts.lengths[[at]], corpus)[0]
        share = int(np.rint(hit.weight * 256.0))
        for term, score in zip(terms.tolist(), scores.tolist(), strict=True):
            mass[term] = mass.get(term, 0) + share * score * idf(counts[term], corpus.nodes)
    best = sorted((term for term in mass if mass[term] > 0), key=lambda term: (-mass[term], term))[:limit]
    if not best:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    top = mass[best[0]]
    weighed = [(term, (mass[term] * 256 + top // 2) // top) for term in best]
    weights = [weight * idf(counts[term], corpus.nodes) for term, weight in weighed]
    return np.array(best, np.int64), np.array(weights, np.int64)
