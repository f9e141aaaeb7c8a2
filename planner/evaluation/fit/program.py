"""The fit, read top to bottom: pools are recalled, numbers fitted to them, twice; then they are measured.

The best of the first stage decide which links are followed, so that pools depend on weights: each round
recalls them by the numbers of the round before, and what is measured is recalled by the numbers measured.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.errors import MalformedInput, RequestError
from planner.evaluation.asking import COUNTER
from planner.evaluation.corpora import Corpus
from planner.evaluation.fit.document import PER, Figures, Fitted, LeftOut, Measured, Numbers
from planner.evaluation.fit.knots import knots
from planner.evaluation.fit.loss import Lists, Sample, least, rounded
from planner.evaluation.fit.pools import Case, Pool, opened
from planner.evaluation.fit.rankings import Tally
from planner.evaluation.loading import Progress
from planner.recall.v2.weights import TERMS, bounds, weights
from planner.recall.v2.weights import VERSION as FILE_VERSION
from planner.selection.budget import request_for, resolve_budget
from planner.settings import Settings
from planner.tokens import counter as counter_named
from planner.trace.record import policy_from
from planner.types import Budget

BUDGETS = (512, 1_024, 2_048, 4_096, 6_000)

VERSION = "v2/fit"
"""What a file calls itself unless it is given a name."""

Samples = dict[str, list[Sample]]
"""The questions of each corpus by its name, whatever the embedder."""


def fit(
    corpora: Sequence[Corpus],
    url: str,
    settings: Sequence[Settings],
    *,
    rounds: int = 2,
    budgets: Sequence[int] = BUDGETS,
    limit: int | None = None,
    version: str = VERSION,
    progress: Progress = lambda stage, done, total: None,
    **parts: Any,
) -> Fitted:
    """Fit weights and knots to corpora, each under each of the settings (one an embedder), and measure them.

    Corpora count the same, and so do the questions of one. With two corpora or more each is also left out:
    numbers are fitted to the others, and measured on it. `limit` is how many labelled questions of each to
    take; `parts` are those of `Planner.connect`. Raises RequestError for corpora of one name or a version not
    of the form, MalformedInput where the labels teach nothing, SettingsError for the weights in force,
    IngestError, EmbedderError, StoreError.
    """
    names = [corpus.name for corpus in corpora]
    if len(set(names)) < len(names):
        raise RequestError(f"the corpora are {', '.join(names)}: each must have a name of its own")
    if not re.fullmatch(FILE_VERSION, version):
        raise RequestError(f"version = {version!r} is not of the form {FILE_VERSION}", field="version")
    started_from = weights(settings[0].score_weights).name
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        cases = [
            stack.enter_context(opened(corpus, url, one, limit, progress, **parts))
            for corpus in corpora
            for one in settings
        ]
        fitting = _Fitting(cases, Path(folder) / "weights.json", [_budget(b) for b in budgets], progress)
        numbers, measured = fitting.run(rounds)
    return Fitted(version, numbers, rounds, started_from, measured)


def trained(samples: Samples) -> Numbers:
    """Return the numbers that fit the questions of some corpora. Raises MalformedInput."""
    groups = list(samples.values())
    if not any(sample.evidence.any() for group in groups for sample in group):
        raise MalformedInput(f"recall finds nothing of what is labelled in {', '.join(samples)}")
    found = rounded(least(Lists.of(groups)), PER)
    if not any(found):
        raise MalformedInput(f"no term tells evidence from the rest in {', '.join(samples)}; label more")
    of = dict(zip(TERMS, found, strict=True))
    rows = [(sample, 1.0 / len(group)) for group in groups for sample in group]
    scores = np.concatenate([sample.terms for sample, _ in rows]) @ np.array(found) / PER
    is_evidence = np.concatenate([sample.evidence > 0 for sample, _ in rows]).astype(np.float64)
    counts = np.concatenate([np.full(len(sample.evidence), share) for sample, share in rows])
    return Numbers(of, knots(scores, is_evidence, counts, *bounds(of), PER))


@dataclass
class _Fitting:
    """What is done with corpora that are open; `file` is where recall reads the numbers of the moment."""

    cases: Sequence[Case]
    file: Path
    budgets: Sequence[Budget]
    progress: Progress

    def run(self, rounds: int) -> tuple[Numbers, tuple[Measured, ...]]:
        numbers: Numbers | None = None
        samples: Samples = {}
        for number in range(1, rounds + 1):
            samples = self._samples(numbers, f"round {number}")
            numbers = trained(samples)
        assert numbers is not None
        figures = [self._figures(case, numbers, "measured") for case in self.cases]
        left_out = [self._left_out(case, samples) for case in self.cases]
        return numbers, tuple(map(_measured, self.cases, figures, left_out))

    def _samples(self, numbers: Numbers | None, stage: str) -> Samples:
        samples: Samples = {}
        for case in self.cases:
            of_corpus = samples.setdefault(case.corpus.name, [])
            of_corpus += [pool.sample() for pool in self._pools(case, numbers, stage)]
        return samples

    def _left_out(self, case: Case, samples: Samples) -> LeftOut | None:
        others = {name: of_corpus for name, of_corpus in samples.items() if name != case.corpus.name}
        if not others:
            return None
        numbers = trained(others)
        return LeftOut(numbers, self._figures(case, numbers, "left out"))

    def _figures(self, case: Case, numbers: Numbers, stage: str) -> Figures:
        settings = case.planner.engine.settings
        tally = Tally(policy_from(settings.to_dict(), settings.plan_model), self.budgets)
        for pool in self._pools(case, numbers, stage):
            tally.add(pool)
        return tally.figures()

    def _pools(self, case: Case, numbers: Numbers | None, stage: str) -> Iterator[Pool]:
        """Recall the pools of a case by these numbers; at first, by those of the settings."""
        if numbers is not None:
            self.file.write_text(numbers.file(VERSION), encoding="utf-8")
        return case.pools(self.file if numbers is not None else None, self.progress, stage)


def _budget(tokens: int) -> Budget:
    """Return a budget that binds at so many tokens."""
    bound = counter_named(COUNTER, {}).bound
    return resolve_budget(request_for(tokens, bound), counter=COUNTER, bound=bound, max_frac=1.0)


def _measured(case: Case, figures: Figures, left_out: LeftOut | None) -> Measured:
    corpus = case.corpus
    return Measured(corpus.name, case.embedder, len(corpus.sources), len(case.questions), figures, left_out)
