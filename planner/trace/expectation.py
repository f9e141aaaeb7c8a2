"""Expectations: that plans for a question hold something, and whether they do. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from blake3 import blake3

from planner.errors import RequestError
from planner.trace.why import Answer, Stage, Why
from planner.types import JsonObject, Outcome, PlanRef

REFUSED = "refused"
"""The stage of what was not planned at all: the request is not one any more."""

_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class ExpectationRef:
    """An expectation is known as `<scope>:<id>`, as a plan is."""

    scope: str
    expectation_id: str

    def __str__(self) -> str:
        """Write the reference."""
        return f"{self.scope}:{self.expectation_id}"

    @classmethod
    def parse(cls, text: str) -> ExpectationRef:
        """Read `<scope>:<id>`. Raises RequestError."""
        scope, _, name = text.partition(":")
        if not scope or _ID.fullmatch(name) is None:
            raise RequestError(f"{text!r} is not an expectation; write <scope>:<16 hex digits>")
        return cls(scope, name)


@dataclass(frozen=True, slots=True)
class Expectation:
    """That plans of `request` hold `what`: a span, a node, a source or a phrase.

    `plan` is the one that was asked about, `stage` what became of it there.
    """

    ref: ExpectationRef
    created_at: datetime
    actor: str
    plan: PlanRef
    request: JsonObject
    what: str
    stage: str
    note: str | None = None

    @classmethod
    def from_row(cls, scope: str, row: Sequence[Any]) -> Expectation:
        """Read a row of `expectations`."""
        name, created_at, actor, plan_id, *rest = row
        return cls(ExpectationRef(scope, name), created_at, actor, PlanRef(scope, plan_id), *rest)

    def to_dict(self) -> dict[str, Any]:
        """Return the expectation as JSON data."""
        plain = {
            "expectation": str(self.ref),
            "plan": str(self.plan),
            "created_at": self.created_at.isoformat(),
        }
        rest = {"actor": self.actor, "request": dict(self.request), "what": self.what}
        return {**plain, **rest, "stage": self.stage, "note": self.note}


@dataclass(frozen=True, slots=True)
class Expected:
    """What became of an expectation in a plan made now; `plan` is None where the request was refused."""

    expectation: Expectation
    held: bool
    stage: str
    sentence: str
    plan: PlanRef | None

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON data."""
        now = {"held": self.held, "stage_now": self.stage, "sentence": self.sentence}
        return {**self.expectation.to_dict(), **now, "plan_now": str(self.plan) if self.plan else None}


def expectation_id(request: Mapping[str, Any], what: str) -> str:
    """Return the id of an expectation, 16 hex digits: the same question and the same thing have the same."""
    canonical = json.dumps([dict(request), what], sort_keys=True, ensure_ascii=False).encode()
    return blake3(b"planner/expectation\0" + canonical).hexdigest(length=8)


def expected(expectation: Expectation, found: Why) -> Expected:
    """Return what `why` says of an expectation; it holds where one span of what is meant is in the plan."""
    best = next((answer for answer in found.answers if is_in_plan(answer)), None)
    answer = best or (found.answers[0] if found.answers else None)
    stage = answer.stage.value if answer else REFUSED
    said = answer.sentence if answer else found.sentence
    return Expected(expectation, best is not None, stage, said, found.plan)


def is_in_plan(answer: Answer) -> bool:
    """Tell whether a span is selected, or stood for by a selected one that it duplicates."""
    original = answer.fate.facts.get("duplicate_of_outcome")
    return answer.stage in (Stage.SELECTED, Stage.NOT_DELIVERED) or original == Outcome.SELECTED.value
