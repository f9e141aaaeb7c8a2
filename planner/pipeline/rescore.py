"""Scores of a caller's own: a cross-encoder, say, weighs the pool anew after recall (recall.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from planner.errors import PlannerError, RescorerError
from planner.ports import Rescorer
from planner.types import Candidate, SpanRef


def rescored(
    rescorer: Rescorer, question: str, candidates: tuple[Candidate, ...], texts: Mapping[SpanRef, str]
) -> tuple[Candidate, ...]:
    """Return the candidates with the rescorer's scores; one without a text keeps its own.

    Raises RescorerError for whatever the rescorer raises, and for anything but one finite score, 0 or more, a
    candidate.
    """
    readable = [c for c in candidates if c.ref in texts]
    try:
        scores = [float(s) for s in rescorer.score(question, readable, [texts[c.ref] for c in readable])]
    except PlannerError:
        raise
    except Exception as error:
        raise RescorerError(f"rescorer {rescorer.name!r} failed: {type(error).__name__}: {error}") from error
    if len(scores) != len(readable):
        raise RescorerError(
            f"rescorer {rescorer.name!r} returned {len(scores)} scores for {len(readable)} candidates"
        )
    wrong = next((s for s in scores if not (math.isfinite(s) and s >= 0)), None)
    if wrong is not None:
        raise RescorerError(f"rescorer {rescorer.name!r} returned {wrong!r}; a score is finite, 0 or more")
    by_ref = {c.ref: score for c, score in zip(readable, scores, strict=True)}
    return tuple(replace(c, score=by_ref[c.ref]) if c.ref in by_ref else c for c in candidates)
