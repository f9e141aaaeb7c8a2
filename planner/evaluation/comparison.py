"""Two reports of the same questions: what differs, whether by chance, and what fell below a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from planner.errors import RequestError
from planner.evaluation import metrics
from planner.evaluation.report import RANKING
from planner.evaluation.stored import METRICS, StoredReport

LEVEL = 0.05
"""Below this probability a difference is not taken for chance."""

ROUNDING = 1e-9
"""Figures are rounded in reports: a fall of exactly the tolerance is none."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of two reports over the questions that both have; `unit` is None for what was selected."""

    corpus: str
    budget: int
    unit: str | None
    metric: str
    a: float
    b: float
    better: int
    worse: int
    p: float

    @property
    def verdict(self) -> str:
        """Say in words whether B differs from A."""
        if self.p >= LEVEL:
            return "no clear difference"
        return "B is better" if self.better > self.worse else "B is worse"

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON data."""
        return {**asdict(self), "difference": round(self.b - self.a, 6), "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Fall:
    """A figure that is below its baseline by more than the tolerance; `now` is None where it is missing."""

    configuration: str
    figure: str
    was: float
    now: float | None


@dataclass(frozen=True, slots=True)
class Worse:
    """A question that gets less than it got: evidence items, or the answer."""

    configuration: str
    question: str
    category: str
    budget: int
    unit: str | None
    evidence: int
    was: int
    now: int
    answer_lost: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """What fell, and which questions got worse, whether or not that made a figure fall."""

    figures: int
    falls: tuple[Fall, ...]
    worse: tuple[Worse, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the check as JSON data."""
        return asdict(self)


def compare(a: Sequence[StoredReport], b: Sequence[StoredReport]) -> tuple[Difference, ...]:
    """Compare reports pair by pair. Raises RequestError where their corpora are not the same in order."""
    if [one.corpus for one in a] != [one.corpus for one in b]:
        of = [", ".join(one.corpus for one in reports) for reports in (a, b)]
        raise RequestError(f"A is of {of[0]}, B of {of[1]}; compare reports of the same corpora")
    return tuple(found for one, other in zip(a, b, strict=True) for found in _differences(one, other))


def check(
    reports: Sequence[StoredReport],
    baseline: Sequence[StoredReport],
    tolerance: float,
    tolerances: Mapping[str, float],
) -> Checked:
    """Compare reports with a baseline, each with its corpus's one in the same place, whatever the models.

    `tolerance` is how much a figure may fall, `tolerances` the same for single metrics. Raises RequestError
    where what the baseline has was not measured, or other questions were asked.
    """
    figures, falls, worse = 0, list[Fall](), list[Worse]()
    for was, now in _pairs(reports, baseline):
        today = {name: value for name, _, value in _figures(now)}
        for name, metric, before in _figures(was):
            figures += 1
            after = today.get(name)
            if after is None or before - after > tolerances.get(metric, tolerance) + ROUNDING:
                falls.append(Fall(now.configuration, name, before, after))
        worse += _worse(was, now)
    return Checked(figures, tuple(falls), tuple(worse))


def _pairs(
    reports: Sequence[StoredReport], baseline: Sequence[StoredReport]
) -> Iterator[tuple[StoredReport, StoredReport]]:
    """Yield each report of a baseline with its counterpart, and those of the specified rule in both."""
    waiting = list(reports)
    for was in baseline:
        now = next((one for one in waiting if one.corpus == was.corpus), None)
        if now is None:
            raise RequestError(f"the baseline has {was.configuration}; the report has nothing beside it")
        waiting.remove(now)
        both = [(was, now)]
        if was.specified is not None and now.specified is not None:
            both.append((was.specified, now.specified))
        for before, after in both:
            if before.results.keys() != after.results.keys():
                asked = f"{len(after.results)} questions, the baseline {len(before.results)}"
                raise RequestError(f"{after.configuration}: the report asked {asked}, or others")
            yield before, after


def sign_test(better: int, worse: int) -> float:
    """Return the exact two-sided p of the sign test on questions that changed (Dixon, Mood 1946).

    p = 2 P(X <= min(better, worse)) of X binomial(better + worse, 1/2), at most 1.
    """
    n = better + worse
    tail = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 2**n)))


def _differences(a: StoredReport, b: StoredReport) -> Iterator[Difference]:
    both = [(result, b.results[name]) for name, result in a.results.items() if name in b.results]
    for unit, budget, in_a, in_b in _cells(a, b):
        for metric in METRICS:
            values = [(was.value(unit, metric, in_a), now.value(unit, metric, in_b)) for was, now in both]
            pairs = [(was, now) for was, now in values if was is not None and now is not None]
            if pairs:
                yield _difference(a.corpus, budget, unit, metric, pairs)


def _difference(
    corpus: str, budget: int, unit: str | None, metric: str, pairs: Sequence[tuple[float, float]]
) -> Difference:
    better, worse = sum(now > was for was, now in pairs), sum(now < was for was, now in pairs)
    a, b = (round(metrics.mean(values), 6) for values in zip(*pairs, strict=True))
    return Difference(corpus, budget, unit, metric, a, b, better, worse, sign_test(better, worse))


def _figures(report: StoredReport) -> Iterator[tuple[str, str, float]]:
    """Yield what must not fall: its name in the report, its metric, its value."""
    for name in RANKING:
        value = report.ranking.get(name)
        if value is not None:
            yield name, name, value
    for budget, cell in report.budgets.items():
        delivered = cell.get("delivered")
        bundles = delivered if isinstance(delivered, Mapping) else {}
        for unit, figures in (("", cell), *((f" delivered by {unit}", it) for unit, it in bundles.items())):
            for metric in METRICS:
                if isinstance(figures.get(metric), (int, float)):
                    yield f"{metric} at {budget}{unit}", metric, figures[metric]


def _worse(was: StoredReport, now: StoredReport) -> Iterator[Worse]:
    cells = list(_cells(was, now))
    for name, before in was.results.items():
        for unit, budget, then, at in cells:
            old, new = before.got(unit), now.results[name].got(unit)
            lost = old.has_answer(then) and not new.has_answer(at)
            if new.found[at] < old.found[then] or lost:
                counts = (before.evidence, old.found[then], new.found[at])
                yield Worse(now.configuration, name, before.category, budget, unit, *counts, lost)


def _cells(a: StoredReport, b: StoredReport) -> Iterator[tuple[str | None, int, int, int]]:
    """Yield the units (None: what was selected) and budgets that both have, with the place in each."""
    places = {budget: place for place, budget in enumerate(b.budgets)}
    for unit in (None, *(unit for unit in a.units if unit in b.units)):
        for place, budget in enumerate(a.budgets):
            if budget in places:
                yield unit, int(budget), place, places[budget]
