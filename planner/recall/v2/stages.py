"""The stages of v2: what is in play, first by both legs, then by neighbours, links and feedback."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from planner.ingest import source_node_id
from planner.lexical.packing import content
from planner.recall.expansion import Provenance
from planner.recall.v2.bm25 import Ints
from planner.recall.v2.features import BEST, Hit, Legs, Links, Scorer, bm25
from planner.recall.v2.feedback import feedback
from planner.recall.v2.lexical import Index, Voice
from planner.recall.v2.links import Path, follow
from planner.recall.v2.names import held, joining, looked_for, names_in, shared
from planner.recall.v2.question import Question
from planner.recall.v2.texts import NO_TEXT, Asked, Place, Text, Texts
from planner.recall.v2.weights import Weights

HITS, AROUND, STEPS = 5, 32, 2
"""The best nodes whose links are followed, and those whose neighbours join, so many steps each way."""

FEEDBACK_TERMS, FEEDBACK_NODES = 40, 64
"""The terms of the hits that are searched for, and how many of what they find joins."""

FEEDBACK_COMMON = 32
"""In a large scope they are those that at most this part of the texts has."""


@dataclass(frozen=True)
class Scored:
    """The terms of nodes, in 1/256, shape (n, m), by the names of the terms; and each node's weighed sum."""

    nodes: Sequence[str]
    names: Sequence[str]
    terms: Ints
    totals: Sequence[int]


@dataclass
class Play:
    """What is in play: the pool with the place of each node, and what was read, of its neighbours too."""

    index: Index
    question: Question
    weights: Weights
    cos: Mapping[str, float]
    lexical: Mapping[str, int]
    pool: dict[str, Place] = field(default_factory=dict)
    provenance: list[Provenance] = field(default_factory=list)
    paths: dict[str, tuple[Path, float]] = field(default_factory=dict)
    fed: dict[str, int] = field(default_factory=dict)
    _texts: dict[str, Text] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _heard: dict[str, Voice] = field(default_factory=dict)
    _shares: dict[str, float] = field(default_factory=dict)

    @cached_property
    def _counts(self) -> Asked:
        return Asked(self.question.terms)

    def begin(self, found: Collection[str]) -> None:
        """Bring in what the legs found and, where there are hops, the neighbours of the best of it."""
        self._read(found)
        roots = self._best(found) if self.index.frame.request.hops else []
        self._stand({*found, *self.index.beside(roots, STEPS)})
        self._walk([node for node in roots if node in self.pool], found)
        self._read_beside()

    def link(self) -> Links:
        """Follow what the best nodes lead to, and search by their terms."""
        scorer = self._scorer()
        hits, texts = self._hits(scorer), scorer.texts
        sources = {h.node_id: source_node_id(self.pool[h.node_id].source_id or "") for h in hits}
        found = follow(self.index.conn, self.index.frame, hits, sources)
        self.paths = {**found.paths, **self.paths}
        self.index.count(t for h in hits for t in texts.frequencies_of(texts.at[h.node_id])[0].tolist())
        names = self._names(hits, texts) if self.index.frame.request.hops else {h.node_id: {} for h in hits}
        counts, corpus = self.index.counts, self.index.corpus
        terms, weights = feedback(texts, hits, self.question, counts, corpus, FEEDBACK_TERMS)
        near = self.index.nearest(terms, weights, BEST, FEEDBACK_COMMON)
        self.fed = dict(list(near.items())[:FEEDBACK_NODES])
        self._stand({*self.paths, *self.fed} - self.pool.keys())
        self._read_beside()
        return Links(hits, found.named, found.edges, names, counts, (terms, weights), span_of(near.values()))

    def _names(self, hits: Sequence[Hit], texts: Texts) -> dict[str, dict[str, int]]:
        """Return, by hit, which nodes share names with it; those that share the most are to join."""
        names = {h.node_id: names_in(texts.own_terms_of(texts.at[h.node_id])) for h in hits}
        pairs = looked_for(names.values(), self.question.words, self.index.counts)
        found = held(self.index.holding(pairs), self.index.corpus)
        by_hit = {hit: shared(of, found) for hit, of in names.items()}
        for hit, mass in by_hit.items():
            for node in joining(mass, hit):
                if node not in self.pool:
                    self.paths.setdefault(node, ((hit, node), 1.0))
        return by_hit

    def scored(self, links: Links) -> Scored:
        """Return the terms of each node of the pool."""
        scorer = self._scorer()
        return self._weighed(scorer.texts.nodes, {**scorer.base(), **scorer.linked(links)})

    def _weighed(self, nodes: Sequence[str], columns: Mapping[str, Ints]) -> Scored:
        names = [name for name in self.weights.of if name in columns]
        terms = np.stack([columns[name] for name in names], axis=1)
        totals = terms @ np.array([self.weights.of[name] for name in names], dtype=np.int64)
        return Scored(nodes, names, terms, totals.tolist())

    def _hits(self, scorer: Scorer) -> list[Hit]:
        scored = self._weighed(scorer.texts.nodes, scorer.base())
        best = sorted(zip(scored.totals, scored.nodes, strict=True), key=lambda of: (-of[0], of[1]))[:HITS]
        top = max(best[0][0], 0) if best else 0
        return [Hit(node, min(max(total / top, 0.0), 1.0) if top else 0.0) for total, node in best]

    @cached_property
    def _legs(self) -> Legs:
        question, corpus = self.question, self.index.corpus
        scores = bm25(self._counts.of(self.lexical), question, corpus).tolist()
        return Legs(question, corpus, self.cos, span_of(sorted(scores, reverse=True)))

    def _best(self, nodes: Iterable[str]) -> list[str]:
        """Return the best of these nodes by half the sum of both legs."""
        named = list(nodes)
        first = (self._legs.similarity(named) + self._legs.bm25(self._counts.of(named))) / 2.0
        ranked = sorted((-score, node) for score, node in zip(first.tolist(), named, strict=True))
        return [node for score, node in ranked[:AROUND] if score < 0]

    def _walk(self, roots: Sequence[str], legs: Collection[str]) -> None:
        """Keep the way from the roots to their neighbours that no leg found."""
        for before in (True, False):
            reached: dict[str, Path] = {node: (node,) for node in roots}
            for _ in range(STEPS):
                beside = {n: self.pool[n].before if before else self.pool[n].after for n in reached}
                reached = {n: (*reached[m], n) for m, n in beside.items() if n in self.pool}
                for near, path in reached.items():
                    if near not in legs:
                        self.paths.setdefault(near, (path, 1.0))

    def _stand(self, nodes: Iterable[str]) -> None:
        """Have the places of nodes; those inside the restriction join the pool."""
        places, provenance = self.index.standing(nodes)
        self.pool |= places
        self.provenance += provenance
        titles = {place.title for place in places.values() if place.title}
        self._share(titles - self._shares.keys())

    def _share(self, titles: Iterable[str]) -> None:
        """Know, of each title, what share of its terms the question has, by IDF."""
        asked = set(self.question.terms.tolist())
        of = {title: content(title) for title in titles}
        touched = {title: terms for title, terms in of.items() if asked & terms}
        self.index.count(term for terms in touched.values() for term in terms)
        self._shares |= dict.fromkeys(of, 0.0)
        for title, terms in touched.items():
            held = sum(self.index.idf(term) for term in terms & asked)
            self._shares[title] = held / (sum(self.index.idf(term) for term in terms) or 1)

    def _read_beside(self) -> None:
        """Read the texts of the pool and of what stands beside it."""
        beside = {n for place in self.pool.values() for n in (place.before, place.after) if n is not None}
        self._read(self.pool.keys() | beside)

    def _read(self, nodes: Collection[str]) -> None:
        read = self.index.texts(set(nodes) - self._asked)
        self._asked |= set(nodes)
        self._texts |= read
        self._counts.read(Texts(list(read), list(read.values())))

    def _scorer(self) -> Scorer:
        near = list(self._texts.keys() - self.pool.keys())
        return Scorer(
            self._legs,
            Texts(list(self.pool), [self._texts.get(node, NO_TEXT) for node in self.pool]),
            list(self.pool.values()),
            near,
            self._counts.of([*self.pool, *near]),
            self._voices(near),
            self._shares,
        )

    def _voices(self, near: Iterable[str]) -> set[Voice]:
        """Return who speaks in which source, also beside the pool."""
        voices = {(p.source_id, p.speaker) for p in self.pool.values() if p.source_id and p.speaker}
        if not voices:
            return voices
        self._heard |= self.index.voices(set(near) - self._heard.keys())
        return voices | set(self._heard.values())


def span_of(ranked: Iterable[int]) -> tuple[int, int]:
    """Return the best and the 200th of scores, best first; 0 where there is none."""
    scores = list(ranked)
    return (scores[0] if scores else 0, scores[BEST - 1] if len(scores) >= BEST else 0)
