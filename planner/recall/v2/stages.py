"""The stages of v2: what is in play, first by both legs, then by neighbours, links and feedback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from planner.ingest import source_node_id
from planner.lexical.packing import content
from planner.recall.v2.bm25 import contributions
from planner.recall.v2.features import BEST, Hit, Links, Scorer, feedback
from planner.recall.v2.lexical import Index
from planner.recall.v2.links import Path, follow
from planner.recall.v2.question import Question
from planner.recall.v2.texts import Text, Texts
from planner.recall.v2.weights import Weights

HITS, AROUND, STEPS = 5, 32, 2
"""The best nodes whose links are followed, and those whose neighbours join, so many steps each way."""

FEEDBACK_TERMS, FEEDBACK_NODES = 40, 64
"""The terms of the hits that are searched for, and how many of what they find joins."""

FEEDBACK_COMMON = 32
"""In a large scope they are those that at most this part of the texts has."""

Features = dict[str, dict[str, int]]


@dataclass
class Play:
    """The nodes in play. `known` are texts that were read, also of what only stands beside them."""

    index: Index
    question: Question
    weights: Weights
    cos: Mapping[str, float]
    lexical: Mapping[str, int]
    pool: set[str] = field(default_factory=set)
    known: dict[str, Text] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    paths: dict[str, tuple[Path, float]] = field(default_factory=dict)
    fed: dict[str, int] = field(default_factory=dict)
    _shares: dict[str, float] = field(default_factory=dict)
    _sources: dict[str, str] = field(default_factory=dict)
    _lexical_span: tuple[int, int] | None = None

    def add(self, nodes: Iterable[str]) -> None:
        """Bring nodes into the pool, as far as the restriction lets them; read what is beside them."""
        wanted = set(nodes)
        self._read(wanted)
        self.pool |= wanted & self.known.keys()
        self._read({n for t in self._in_pool() for n in (t.before, t.after) if n is not None})

    def around(self) -> None:
        """Bring in the neighbours of the best of the first stage."""
        scorer = self._scorer()
        first = dict(zip(scorer.texts.at, scorer.first.tolist(), strict=True))
        best = sorted((n for n in self.pool if first[n] > 0), key=lambda n: (-first[n], n))[:AROUND]
        for place in ("before", "after"):
            reached: dict[str, Path] = {node: (node,) for node in best}
            for _ in range(STEPS):
                beside = {n: getattr(self.known[n], place) for n in reached if n in self.known}
                reached = {n: (*reached[m], n) for m, n in beside.items() if n in self.known}
                for near, path in reached.items():
                    if near not in self.pool:
                        self.paths.setdefault(near, (path, 1.0))
                self.add(reached)

    def link(self) -> Links:
        """Follow what the best nodes lead to, and search by their terms."""
        scorer = self._scorer()
        hits = self._hits(scorer)
        sources = {
            h.node_id: scorer.source_nodes.get(self.known[h.node_id].source_id or "", "") for h in hits
        }
        found = follow(self.index.conn, self.index.frame, hits, sources)
        self.paths = {**found.paths, **self.paths}
        texts = scorer.texts
        self.index.count(t for hit in hits for t in texts.terms_of(texts.at[hit.node_id]).tolist())
        counts, corpus = self.index.counts, self.index.corpus
        terms, weights = feedback(texts, hits, self.question, counts, corpus, FEEDBACK_TERMS)
        near = self.index.nearest(terms, weights, BEST, FEEDBACK_COMMON)
        self.fed = dict(list(near.items())[:FEEDBACK_NODES])
        self.add([*found.paths, *self.fed])
        ranked = list(near.values())
        span = (ranked[0], ranked[BEST - 1] if len(ranked) >= BEST else 0) if ranked else (0, 0)
        return Links(hits, found.named, found.edges, counts, (terms, weights), span)

    def features(self, links: Links) -> Features:
        """Return the terms of each node of the pool, in 1/256, by the name of the term."""
        scorer = self._scorer()
        columns = {**scorer.base(), **scorer.linked(links)}
        return {
            node: {name: int(values[at]) for name, values in columns.items()}
            for node, at in scorer.texts.at.items()
            if node in self.pool
        }

    def total(self, features: Mapping[str, int]) -> int:
        """Return the sum of terms times weights."""
        return sum(self.weights.of[name] * value for name, value in features.items())

    def _hits(self, scorer: Scorer) -> list[Hit]:
        base = scorer.base()
        totals = sum(
            (self.weights.of[name] * base[name] for name in base), np.zeros(len(self.known), np.int64)
        )
        of = {node: int(totals[at]) for node, at in scorer.texts.at.items() if node in self.pool}
        best = sorted(of, key=lambda node: (-of[node], node))[:HITS]
        top = max(of[best[0]], 0) if best else 0
        return [Hit(n, min(max(of[n] / top, 0.0), 1.0) if top else 0.0) for n in best]

    def _scorer(self) -> Scorer:
        texts = Texts([self.known[node] for node in sorted(self.known)])
        self._share({text.title for text in texts.of if text.title})
        sources = {text.source_id for text in texts.of if text.source_id} - self._sources.keys()
        self._sources |= {source: source_node_id(source) for source in sources}
        return Scorer(
            self.question, self.index.corpus, texts, self.cos, self._span(), self._shares, self._sources
        )

    def _span(self) -> tuple[int, int]:
        """Return the best and the 200th BM25 of the lexical leg, by all terms of the question."""
        if self._lexical_span is None:
            texts = Texts([self.known[node] for node in self.lexical if node in self.known])
            counts = contributions(texts.counts(self.question.terms), texts.lengths, self.index.corpus)
            ranked = sorted((counts @ self.question.idf).tolist(), reverse=True) or [0]
            self._lexical_span = (ranked[0], ranked[BEST - 1] if len(ranked) >= BEST else 0)
        return self._lexical_span

    def _share(self, titles: set[str]) -> None:
        """Know, of each title, what share of its terms the question has, by IDF."""
        asked = set(self.question.terms.tolist())
        fresh = {title: content(title) for title in titles - self._shares.keys()}
        touched = {title: terms for title, terms in fresh.items() if asked & terms}
        self.index.count(term for terms in touched.values() for term in terms)
        self._shares |= dict.fromkeys(fresh, 0.0)
        for title, terms in touched.items():
            held = sum(self.index.idf(term) for term in terms & asked)
            self._shares[title] = held / (sum(self.index.idf(term) for term in terms) or 1)

    def _in_pool(self) -> list[Text]:
        return [self.known[node] for node in self.pool]

    def _read(self, nodes: set[str]) -> None:
        self.known |= self.index.texts(nodes - self.asked)
        self.asked |= nodes
