"""What a fit leaves: the numbers that score by it, all integers, with what they are from, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.evaluation.fit.knots import Knots
from planner.evaluation.fit.loss import RIDGE
from planner.evaluation.fit.rankings import OWN
from planner.evaluation.report import encoded
from planner.pipeline.draft import own_version

PER = 16
"""Weights are multiples of 1 / PER."""

Figures = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Evidence recall and all-evidence, from 0 to 1, by ranking and budget."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The weight of each term in sixteenths, and the knots of the table into (0, 1)."""

    weights: Mapping[str, int]
    knots: Knots

    def file(self, version: str, provenance: Mapping[str, Any] | None = None) -> str:
        """Return the content of a file that planner/recall/v2/weights.py reads."""
        about = {} if provenance is None else {"fitted": provenance}
        return encoded([{**self.to_dict(version), **about}]) + "\n"

    def to_dict(self, version: str) -> dict[str, Any]:
        """Return the numbers as JSON data."""
        knots = [list(knot) for knot in self.knots]
        return {"version": version, "per": PER, "weights": dict(self.weights), "knots": knots}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Numbers that were fitted to the other corpora, and what the one that was left out got by them."""

    numbers: Numbers
    figures: Figures


@dataclass(frozen=True, slots=True)
class Measured:
    """What a corpus under an embedder got by the numbers fitted to all, and by those fitted without it."""

    corpus: str
    embedder: str
    sources: int
    questions: int
    figures: Figures
    left_out: LeftOut | None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON data, shares from 0 to 1."""
        left = self.left_out
        return {
            "corpus": self.corpus,
            "embedder": self.embedder,
            "sources": self.sources,
            "questions": self.questions,
            "figures": self.figures,
            "left_out": left and {"weights": dict(left.numbers.weights), "figures": left.figures[OWN]},
        }

    def provenance(self) -> dict[str, Any]:
        """Return the same in integers: shares in thousandths."""
        left = self.left_out
        return {
            "sources": self.sources,
            "questions": self.questions,
            "scores": {name: _thousandths(cells) for name, cells in self.figures.items()},
            "left_out": left
            and {"weights": dict(left.numbers.weights), "scores": _thousandths(left.figures[OWN])},
        }


@dataclass(frozen=True, slots=True)
class Fitted:
    """The numbers, how they came about, and what each corpus got."""

    version: str
    numbers: Numbers
    rounds: int
    started_from: str
    measured: tuple[Measured, ...]

    def file(self) -> str:
        """Return the content of the data file: from the same corpora the same, byte for byte."""
        about = {
            **self._about(),
            "ridge_millionths": round(RIDGE * 1_000_000),
            "scores": "[evidence recall, all-evidence] in thousandths, by budget in tokens",
            **{f"{one.corpus}, {one.embedder}": one.provenance() for one in self.measured},
        }
        return self.numbers.file(self.version, about)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            **self.numbers.to_dict(self.version),
            **self._about(),
            "corpora": [one.to_dict() for one in self.measured],
        }

    def _about(self) -> dict[str, Any]:
        program = f"planner eval fit, evidence-planner {own_version()}"
        return {"program": program, "rounds": self.rounds, "started_from": self.started_from}


def _thousandths(cells: Mapping[str, Mapping[str, float]]) -> dict[str, list[int]]:
    return {
        budget: [round(1_000 * cell["evidence_recall"]), round(1_000 * cell["all_evidence"])]
        for budget, cell in cells.items()
    }
