"""Reports that were written to files, read back and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.errors import MalformedInput
from planner.evaluation.corpora import json_of
from planner.request import request_error

METRICS = ("evidence_recall", "all_evidence", "answer_in_context")
"""What is compared at each budget."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class StoredGot(_Part):
    """What one question got, by place among the budgets; `answered` is None where no answer is known."""

    found: tuple[int, ...]
    answered: tuple[int, ...] | None = None

    def has_answer(self, place: int) -> bool:
        """Tell whether the answer is there at the budget of that place."""
        return self.answered is not None and bool(self.answered[place])


class StoredResult(StoredGot):
    """One question."""

    category: str
    evidence: Annotated[int, Field(ge=0)]
    ranks: tuple[int | None, ...] = ()
    delivered: Mapping[str, StoredGot] = Field(default_factory=dict)

    def got(self, unit: str | None) -> StoredGot:
        """Return what was selected, or what was delivered by a unit."""
        return self if unit is None else self.delivered[unit]

    def value(self, unit: str | None, metric: str, place: int) -> float | None:
        """Return a metric of the question at the budget of that place, None where it has none."""
        got = self.got(unit)
        if metric == "answer_in_context":
            return None if got.answered is None else float(got.answered[place])
        if not self.evidence:
            return None
        found = got.found[place]
        return float(found == self.evidence) if metric == "all_evidence" else found / self.evidence


class StoredReport(_Part):
    """One report; figures are compared by name, so that cells may hold more."""

    corpus: str
    embedder: str
    score_model: str
    plan_model: str
    max_frac: float
    units: tuple[str, ...] = ()
    budgets: Mapping[str, Mapping[str, object]]
    ranking: Mapping[str, float | None] = Field(default_factory=dict)
    results: Mapping[str, StoredResult]
    specified: StoredReport | None = None

    @model_validator(mode="after")
    def _fits(self) -> StoredReport:
        for name, result in self.results.items():
            rows = [
                result.got(unit) for unit in (None, *self.units) if unit is None or unit in result.delivered
            ]
            lists = [values for row in rows for values in (row.found, row.answered) if values is not None]
            if len(rows) != 1 + len(self.units) or any(len(values) != len(self.budgets) for values in lists):
                raise ValueError(f"question {name!r} does not have a figure for each budget and unit")
        return self

    @property
    def configuration(self) -> str:
        """What was measured under what, in words."""
        models = f"score_model {self.score_model}, plan_model {self.plan_model}"
        return f"{self.corpus}, {self.embedder}, {models}, max_frac {self.max_frac:g}"


def read_reports(path: Path) -> tuple[StoredReport, ...]:
    """Read a file of `planner eval run`. Raises UnreadableInput, MalformedInput."""
    document = json_of(path)
    listed = document if isinstance(document, list) else [document]
    if not listed:
        raise MalformedInput(f"{path} holds no report")
    try:
        return tuple(StoredReport.model_validate(one) for one in listed)
    except ValidationError as error:
        raise MalformedInput(
            f"{path} is not a report of `planner eval run`: {request_error(error)}"
        ) from None
