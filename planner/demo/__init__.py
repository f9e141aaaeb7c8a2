"""The corpus that `planner demo` ingests, and labelled questions about it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Phrase:
    """Text that a plan must hold, verbatim in the source that it comes from."""

    source_id: str
    text: str


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question, its limits, and what a plan within them must include.

    The budget is in tokens of the default counter; `min_score` keeps spans out that only fill it.
    """

    question_id: str
    text: str
    budget_tokens: int
    min_score: float
    must_include: tuple[Phrase, ...]


def corpus_folder() -> Path:
    """Return the folder of the shipped corpus."""
    return Path(str(files(__name__))) / "corpus"


def questions() -> tuple[DemoQuestion, ...]:
    """Return the labelled questions; the first three are those that `planner demo` asks."""
    raw = (files(__name__) / "questions.json").read_bytes()
    return TypeAdapter(tuple[DemoQuestion, ...]).validate_json(raw)
