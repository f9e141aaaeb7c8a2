"""The terms of the score, each in 1/256 (ranking.md says what they are and why). Pure.

All sums are of integers; what is divided is divided once, so that no order of evaluation decides a bit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from planner.ingest import source_node_id
from planner.lexical.packing import content, numbers, sequence
from planner.recall.v2.bm25 import Corpus, Floats, Ints, contributions, idf, min_max, on_grid
from planner.recall.v2.question import Question
from planner.recall.v2.texts import Counts, Place, Texts

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
    which the caller's own edges lead, with their confidence; `names` the nodes that share names with a hit,
    with the IDF of these together. `feedback` weighs the terms of the hits, and
    `feedback_span` are the scores of the best and of the 200th by them.
    """

    hits: Sequence[Hit]
    named: Mapping[str, Mapping[str, int]]
    edges: Mapping[str, Mapping[str, float]]
    names: Mapping[str, Mapping[str, int]]
    counts: Mapping[int, int]
    feedback: tuple[Ints, Ints]
    feedback_span: tuple[int, int]


@dataclass(frozen=True)
class Legs:
    """The question, and by what both legs are made comparable: all similarities, and the span of BM25."""

    question: Question
    corpus: Corpus
    cos: Mapping[str, float]
    lexical_span: tuple[int, int]

    @cached_property
    def _cos_span(self) -> tuple[float, float]:
        sims = sorted(self.cos.values(), reverse=True) or [0.0]
        return sims[0], sims[min(BEST, len(sims)) - 1]

    def similarity(self, nodes: Sequence[str]) -> Floats:
        """Return the similarity of each node, min-max; 0 where the leg did not find it."""
        return min_max(np.array([self.cos.get(node, 0.0) for node in nodes]), *self._cos_span)

    def bm25(self, counts: Counts) -> Floats:
        """Return BM25 of texts, min-max."""
        return min_max(bm25(counts, self.question, self.corpus), *self.lexical_span)


def bm25(counts: Counts, question: Question, corpus: Corpus) -> Ints:
    """Return BM25 of texts by all terms of the question."""
    scores: Ints = contributions(*counts, corpus) @ question.idf
    return scores


@dataclass(frozen=True)
class Scorer:
    """Everything by which the nodes of the pool, `texts`, are scored.

    `near` are nodes beside them that are not in the pool; `counts` are of the pool, then of `near`. `voices`
    are sources with who speaks in them.
    """

    legs: Legs
    texts: Texts
    places: Sequence[Place]
    near: Sequence[str]
    counts: Counts
    voices: Collection[tuple[str, str]]
    title_share: Mapping[str, float]

    @cached_property
    def _has(self) -> Ints:
        """Whether a term of the question is in a text, 1 or 0; the last row is of what is not in play."""
        return np.pad(np.minimum(self.counts.of, 1), ((0, 1), (0, 0)))

    @cached_property
    def has(self) -> Ints:
        """Whether each term of the question is in each text of the pool: 1 or 0."""
        return self._has[: len(self.places)]

    @cached_property
    def title(self) -> Floats:
        """The share of each node's title that the question has."""
        return np.array([self.title_share.get(place.title or "", 0.0) for place in self.places])

    def base(self) -> dict[str, Ints]:
        """Return the terms that need no links, by name."""
        question, has, pool = self.legs.question, self.has, slice(len(self.places))
        cos = self.legs.similarity([*self.texts.nodes, *self.near])
        bm = self.legs.bm25(self.counts)
        before = self._rows_of([place.before for place in self.places])
        after = self._rows_of([place.after for place in self.places])
        new = np.maximum(self._has[before], self._has[after]) * (1 - has)
        rarest = has[:, question.rarest] if len(question.terms) else np.zeros(len(self.places))
        found = {
            "cos": cos[pool],
            "lex": np.maximum(0.0, 2.0 * bm[pool] - 1.0),
            "cov": has @ question.idf / question.total,
            "rarest": rarest.astype(np.float64),
            "title": self.title,
            "titlefull": (self.title == 1.0).astype(np.float64),
            "pair": self._pair(),
            "prev": np.append((cos + bm) / 2.0, 0.0)[before],
            "nbnew": new @ question.idf / question.total,
            "spk": self._speakers(),
        }
        return {name: on_grid(values) for name, values in found.items()}

    def linked(self, links: Links) -> dict[str, Ints]:
        """Return the terms that the hits give, by name."""
        asked = {int(term) for term in self.legs.question.terms}
        rare = [self._rare(hit, links.counts, asked) for hit in links.hits]
        fed, weights = links.feedback
        terms = np.unique(np.concatenate((fed, *rare)))
        counts = self.texts.counts(terms)
        mention, joint, names = np.zeros((3, len(self.places)))
        for hit, shared in zip(links.hits, rare, strict=True):
            mention = np.maximum(mention, hit.weight * self._mentioned(hit, links))
            names = np.maximum(names, hit.weight * self._names(hit, links))
            there = np.minimum(counts[:, np.searchsorted(terms, shared)], 1)
            joint = np.maximum(joint, self._joint(hit, there @ self._idf(shared, links.counts)))
        scores = contributions(counts[:, np.searchsorted(terms, fed)], self.texts.lengths, self.legs.corpus)
        prf = min_max(scores @ weights, *links.feedback_span)
        # A term common to many texts does not find any by itself, so that one may be above the best found.
        found = {"mention": mention, "prf": np.minimum(prf, 1.0), "joint": joint, "names": names}
        return {name: on_grid(values) for name, values in found.items()}

    def _rows_of(self, nodes: Sequence[str | None]) -> Ints:
        """Return the rows of nodes among all texts, the last where one is not in play."""
        return np.array([self._rows.get(node or "", -1) for node in nodes], dtype=np.int64)

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {node: i for i, node in enumerate((*self.texts.nodes, *self.near))}

    @cached_property
    def _in_source(self) -> Mapping[str, Sequence[int]]:
        """The positions of the nodes in each source, by the node of the source."""
        found: dict[str, list[int]] = {}
        for at, place in enumerate(self.places):
            found.setdefault(place.source_id or "", []).append(at)
        return {source_node_id(source): places for source, places in found.items()}

    def _mentioned(self, hit: Hit, links: Links) -> Floats:
        out = np.zeros(len(self.places))
        for source, times in links.named[hit.node_id].items():
            own = list(self._in_source.get(source, ()))
            out[own] = (1.0 - self.title[own]) / float(np.sqrt(float(times)))
        for node, confidence in links.edges[hit.node_id].items():
            if node in self.texts.at:
                at = self.texts.at[node]
                out[at] = max(out[at], confidence)
        return out

    def _names(self, hit: Hit, links: Links) -> Floats:
        """Return how much nodes of other sources share of a hit's names, in names that one text alone has."""
        out = np.zeros(len(self.places))
        own = self.places[self.texts.at[hit.node_id]].source_id
        for node, mass in links.names[hit.node_id].items():
            at = self.texts.at.get(node)
            if at is not None and self.places[at].source_id != own:
                out[at] = min(mass / idf(1, self.legs.corpus.nodes), 1.0)
        return out

    def _rare(self, hit: Hit, counts: Mapping[int, int], asked: set[int]) -> Ints:
        """Return the terms of a hit that few texts have, but another has too, apart from the question's."""
        limit = max(3, self.legs.corpus.nodes // 30)
        terms, _ = self.texts.frequencies_of(self.texts.at[hit.node_id])
        rare = [t for t in terms.tolist() if 1 < counts.get(t, 0) <= limit and t not in asked]
        return np.array(rare, dtype=np.int64)

    def _idf(self, terms: Ints, counts: Mapping[int, int]) -> Ints:
        return np.array([idf(counts[t], self.legs.corpus.nodes) for t in terms.tolist()], dtype=np.int64)

    def _joint(self, hit: Hit, shared: Ints) -> Floats:
        """Return the question's share that is new beside the hit, where rare terms of it are shared."""
        question, at = self.legs.question, self.texts.at[hit.node_id]
        new = (self.has * (1 - self.has[at])) @ question.idf / question.total
        kin = np.minimum(shared / (2.0 * idf(1, self.legs.corpus.nodes)), 1.0)
        kin[at] = 0.0
        joint: Floats = kin * new
        return joint

    def _pair(self) -> Floats:
        question = self.legs.question
        num, den = np.zeros(len(self.places), dtype=np.int64), 0
        held = {place.title or "" for place, share in zip(self.places, self.title, strict=True) if share}
        titles = {title: numbers(sequence(title)) for title in held}
        for first, second in question.pairs:
            a, b = int(question.terms[first]), int(question.terms[second])
            weight = int(question.idf[first] + question.idf[second])
            titled = {t for t, seq in titles.items() if bool(((seq[:-1] == a) & (seq[1:] == b)).any())}
            there = self.texts.with_pair(a, b)
            if titled:
                there |= np.array([place.title in titled for place in self.places])
            num += weight * there
            den += weight
        return num / (den or 1)

    def _speakers(self) -> Floats:
        """Return 1 where the question names the speaker, -1 where another who takes part in the talk."""
        together: dict[str, set[str]] = {}
        for source, speaker in self.voices:
            together.setdefault(source, set()).add(speaker)
        everyone = {speaker for speakers in together.values() for speaker in speakers}
        named = {speaker for speaker in everyone if self.legs.question.words & content(speaker)}
        partners: dict[str, set[str]] = {}
        for speakers in together.values():
            for speaker in speakers:
                partners.setdefault(speaker, set()).update(speakers)
        against = {speaker for speaker, others in partners.items() if named & others} - named
        said = [place.speaker for place in self.places]
        return np.array([float(who in named) - float(who in against) for who in said])
