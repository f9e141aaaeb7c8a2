"""Whether the evidence is there, as shares of questions from 0 to 1; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from planner.evaluation import metrics
from planner.evaluation.asking import Got

DIGITS = 6
"""To how many digits figures are kept."""


def quality(evidence: Sequence[int], got: Sequence[Got]) -> dict[str, Any]:
    """Return whether the evidence is there: questions have so many items of it, and got these texts.

    Evidence recall and all-evidence are those of `recall`, answer-in-context is the share of questions whose
    answer is in the text.
    """
    answered = [text.answered for text in got if text.answered is not None]
    return {
        **recall(evidence, [text.found for text in got]),
        "answer_in_context": share(answered),
        "questions": sum(map(bool, evidence)),
        "answers": len(answered),
    }


def recall(evidence: Sequence[int], found: Sequence[int]) -> dict[str, float | None]:
    """Return evidence recall and all-evidence of questions that have so many items, of which so many are hit.

    The first is the mean over questions of hit items / items, the other the share of questions whose items
    are all hit; questions without evidence do not count.
    """
    labelled = [(hits, items) for hits, items in zip(found, evidence, strict=True) if items]
    return {
        "evidence_recall": share(hits / items for hits, items in labelled),
        "all_evidence": share(hits == items for hits, items in labelled),
    }


def average(values: Iterable[float]) -> float:
    """Return the mean, rounded; 0 for none."""
    return round(metrics.mean(values), DIGITS)


def share(values: Iterable[float]) -> float | None:
    """Return the mean, rounded; None for none."""
    listed = list(values)
    return average(listed) if listed else None


def difference(a: float | None, b: float | None) -> float | None:
    """Return a - b, rounded; None where one is not known."""
    return None if a is None or b is None else round(a - b, DIGITS)
