"""Pools as recall makes them: a corpus in a scratch database, asked through the real path up to selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.client import Planner
from planner.engine import Stopwatch
from planner.errors import MalformedInput
from planner.evaluation import metrics
from planner.evaluation.asking import COUNTER
from planner.evaluation.corpora import Corpus, Question
from planner.evaluation.fit.loss import Floats, Ints, Sample
from planner.evaluation.loading import Labels, Progress, load
from planner.evaluation.metrics import Item
from planner.pipeline.draft import Draft
from planner.pipeline.plan import asked
from planner.recall.v2.bm25 import GRID
from planner.recall.v2.weights import TERMS
from planner.request import PlanRequest
from planner.settings import Settings
from planner.store.scratch import scratch_database
from planner.types import Candidate

RULE: Mapping[str, Any] = {
    "score_model": "v2",
    "plan_model": "v2",
    "max_frac_per_source": 1.0,
    "max_budget": None,
    "trace": "off",
}
"""What pools are made and packed under, whatever the settings say."""


@dataclass(frozen=True)
class Pool:
    """What recall found for one question: n candidates with their scores, and their t terms in 1/256.

    `similarity` and `bm25` are the scores of both legs, 0 where a leg did not find the candidate; `before`
    and `after` are the places of its neighbours in the source, n where the pool does not hold them.
    """

    items: tuple[Item, ...]
    candidates: tuple[Candidate, ...]
    terms: Ints
    similarity: Floats
    bm25: Floats
    before: Ints
    after: Ints

    def sample(self) -> Sample:
        """Return the terms and how much of the evidence each candidate is: items weigh the same."""
        evidence = np.zeros(len(self.candidates))
        for item in self.items:
            bytes_of = np.array([metrics.covered(item, (c.ref,)) for c in self.candidates], dtype=np.float64)
            evidence += bytes_of / max(bytes_of.sum(), 1.0)
        return Sample(self.terms / GRID, evidence)


@dataclass
class Case:
    """A corpus in a scratch database under one embedder, with its questions whose evidence is labelled."""

    corpus: Corpus
    planner: Planner
    questions: Sequence[tuple[Question, tuple[Item, ...]]]
    _places: dict[tuple[str, str], dict[int, int]] = field(default_factory=dict)

    @property
    def embedder(self) -> str:
        """The name of what embedded it."""
        return self.planner.engine.embedder().name

    def pools(self, weights: Path | None, progress: Progress, stage: str) -> Iterator[Pool]:
        """Recall the pool of every question under the weights of a file; without one, of the settings."""
        engine = self.planner.engine
        changes = {} if weights is None else {"score_weights": str(weights)}
        planner = Planner(replace(engine, settings=engine.settings.model_copy(update=changes)))
        for number, (question, items) in enumerate(self.questions, start=1):
            yield self._pool(_recalled(planner, question), question.scope, items)
            progress(f"{self.corpus.name}: {stage}", number, len(self.questions))

    def _pool(self, draft: Draft, scope: str, items: tuple[Item, ...]) -> Pool:
        assert draft.recalled is not None
        stats, candidates = draft.recalled.stats, draft.candidates
        nodes = [candidate.node_id or "" for candidate in candidates]
        similar = {node.node_id: node.similarity or 0.0 for node in draft.recalled.nodes}
        of, names = stats["terms"]["of"], stats["terms"]["names"]
        order = [names.index(name) for name in TERMS]
        terms = np.array([of[node] for node in nodes], dtype=np.int64).reshape(-1, len(names))[:, order]
        before, after = self._beside(scope, candidates)
        return Pool(
            items,
            candidates,
            terms,
            np.array([similar[node] for node in nodes], dtype=np.float64),
            np.array([stats["bm25"].get(node, 0) for node in nodes], dtype=np.float64),
            before,
            after,
        )

    def _beside(self, scope: str, candidates: Sequence[Candidate]) -> tuple[Ints, Ints]:
        """Return the places of the spans before and after each candidate's."""
        where = [(c.source_id, self._place(scope, c)) for c in candidates]
        places = {key: place for place, key in enumerate(where)}
        steps = ([places.get((source, at + by), len(where)) for source, at in where] for by in (-1, 1))
        before, after = (np.array(step, dtype=np.int64) for step in steps)
        return before, after

    def _place(self, scope: str, candidate: Candidate) -> int:
        key = (scope, candidate.source_id)
        if key not in self._places:
            spans = self.planner.source(*key).spans
            self._places[key] = {start: i for i, start in enumerate(sorted(h.ref.start for h in spans))}
        return self._places[key][candidate.start]


@contextmanager
def opened(
    corpus: Corpus, url: str, settings: Settings, limit: int | None, progress: Progress, **parts: Any
) -> Iterator[Case]:
    """Ingest a corpus into a scratch database on the server of `url`; it is dropped at the end.

    `limit` is how many labelled questions to take. Raises MalformedInput where there is none, IngestError,
    EmbedderError, StoreError.
    """
    labelled = [question for question in corpus.questions if question.evidence][:limit]
    if not labelled:
        raise MalformedInput(f"corpus {corpus.name!r} has no question whose evidence is labelled")
    ruled = settings.model_copy(update=dict(RULE))
    with scratch_database(url) as scratch, Planner.connect(scratch, settings=ruled, **parts) as planner:
        load(planner, corpus, progress)
        labels = Labels(planner, corpus)
        yield Case(corpus, planner, [(question, labels.items(question)) for question in labelled])


def _recalled(planner: Planner, question: Question) -> Draft:
    """Run a plan of a question up to the point where spans are selected."""
    fields = {"counter": COUNTER, "allow_ungrounded": True}
    effective, counter, budget = asked(planner.engine, PlanRequest.of(question.scope, question.text, fields))
    draft = Draft(planner.engine, effective, counter, budget, None, Stopwatch())
    with planner.engine.store.scoped(draft.scope_id, "reader", snapshot=True) as conn:
        draft.look(conn)
        draft.recall(conn)
        draft.count(conn)
    return draft
