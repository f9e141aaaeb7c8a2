"""The weights of `score_model: v2`: one versioned data file of integers, the package's or an operator's own.

`per` is what weights and the x of knots are multiples of one part of: 16 means sixteenths. The y of knots are
millionths. `planner eval fit` writes such files.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

from blake3 import blake3
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.errors import SettingsError
from planner.recall.v2.bm25 import GRID
from planner.request import request_error

TERMS: Mapping[str, int] = {
    "cos": 0,
    "lex": 0,
    "cov": 0,
    "rarest": 0,
    "title": 0,
    "titlefull": 0,
    "pair": 0,
    "prev": 0,
    "nbnew": 0,
    "spk": -1,
    "mention": 0,
    "prf": 0,
    "joint": 0,
    "names": 0,
}
"""Every term of the score (planner/recall/v2/features.py) with the least it can be; the most is 1."""

MILLION = 1_000_000

VERSION = r"^[A-Za-z0-9._/-]{1,64}$"
"""What a file may call itself."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each term of the score, in multiples of `1 / per`, and the table into (0, 1)."""

    version: str
    per: int
    of: Mapping[str, int]
    knots: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        """What plans record: the version that the file claims, and a digest of the numbers that it has."""
        counting = {term: weight for term, weight in self.of.items() if weight}
        numbers = json.dumps([self.per, counting, self.knots], sort_keys=True)
        return f"{self.version}+{blake3(numbers.encode()).hexdigest(length=6)}"

    def score(self, total: int) -> float:
        """Return S(n) of a sum of features times weights: piecewise linear, strictly increasing."""
        (first, low), (last, high) = self.knots[0], self.knots[-1]
        x = total / (GRID * self.per)
        if not first <= x <= last:
            return low if x < first else high
        at = min(bisect_right(self.knots, (x, 2.0)), len(self.knots) - 1)
        (x0, y0), (x1, y1) = self.knots[at - 1], self.knots[at]
        return y0 + (x - x0) * ((y1 - y0) / (x1 - x0))


def weights(path: str | None = None) -> Weights:
    """Return the weights of a file, or those that come with the package.

    The file is read each time: plans that follow its change are under what it says then. Raises SettingsError
    naming the file, and what is wrong in it.
    """
    if path is None:
        return _packaged()
    try:
        return _parsed(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"score_weights = {path!r}: {reason}", key="score_weights", value=path) from None


def bounds(of: Mapping[str, int]) -> tuple[int, int]:
    """Return the least and the greatest score that terms of these weights can add up to, in their unit."""
    return sum(TERMS[term] * weight for term, weight in of.items()), sum(of.values())


Millionths = Annotated[int, Field(ge=1, lt=MILLION)]


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: str = Field(pattern=VERSION)
    per: Annotated[int, Field(ge=1, le=1_024)]
    weights: Mapping[str, Annotated[int, Field(ge=0, le=MILLION)]]
    knots: Annotated[tuple[tuple[int, Millionths], ...], Field(min_length=2)]
    fitted: Mapping[str, Any] = Field(default_factory=dict, description="where the numbers are from")

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        for term in self.weights:
            if term not in TERMS:
                raise ValueError(f"{term!r} is no term of the score; the terms are {', '.join(TERMS)}")
        if not any(self.weights.values()):
            raise ValueError("no term has a weight above 0")
        for before, after in zip(self.knots, self.knots[1:], strict=False):
            if not (before[0] < after[0] and before[1] < after[1]):
                raise ValueError(f"knots must rise from one to the next: {before} is followed by {after}")
        least, most = bounds(self.weights)
        if self.knots[0][0] > least or self.knots[-1][0] < most:
            raise ValueError(f"knots must reach from {least} to {most}, as the sum of terms does")
        return self


@lru_cache(maxsize=8)
def _parsed(data: bytes) -> Weights:
    """Return the weights that a file's content holds. Raises ValueError."""
    try:
        file = _File.model_validate_json(data)
    except ValidationError as error:
        raise ValueError(str(request_error(error))) from None
    of = {term: file.weights.get(term, 0) for term in TERMS}
    knots = tuple((x / file.per, y / MILLION) for x, y in file.knots)
    return Weights(file.version, file.per, of, knots)


def _packaged() -> Weights:
    return _parsed(_packaged_bytes())


@lru_cache(maxsize=1)
def _packaged_bytes() -> bytes:
    return files("planner.recall.v2").joinpath("weights.json").read_bytes()
