"""The weights of `score_model: v2`: one versioned data file, read once."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from planner.recall.v2.bm25 import GRID


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each term of the score, in multiples of `1 / per`, and the table into (0, 1)."""

    version: str
    per: int
    of: Mapping[str, int]
    knots: tuple[tuple[float, float], ...]

    def score(self, total: int) -> float:
        """Return S(n) of a sum of features times weights: piecewise linear, strictly increasing."""
        (first, low), (last, high) = self.knots[0], self.knots[-1]
        x = total / (GRID * self.per)
        if not first <= x <= last:
            return low if x < first else high
        at = min(bisect_right(self.knots, (x, 2.0)), len(self.knots) - 1)
        (x0, y0), (x1, y1) = self.knots[at - 1], self.knots[at]
        return y0 + (x - x0) * ((y1 - y0) / (x1 - x0))


@cache
def weights() -> Weights:
    """Return the weights that come with the package."""
    data = json.loads(files("planner.recall.v2").joinpath("weights.json").read_text(encoding="utf-8"))
    knots = tuple((float(x), float(y)) for x, y in data["knots"])
    return Weights(data["version"], data["per"], data["weights"], knots)
