"""The question as vectors: one a formulation, unit length, in the space of the scope's model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from planner.errors import EmbedderError, PlannerError, RequestError
from planner.ports import Embedder, Vectors
from planner.recall.frame import Model
from planner.recall.score import normalise
from planner.request import PlanRequest

Zeros = npt.NDArray[np.bool_]


def question_vectors(request: PlanRequest, embedder: Callable[[], Embedder], model: Model | None) -> Vectors:
    """Return the formulations' vectors, shape (m, d); a zero vector asks nothing and is left out.

    Raises RequestError where a given embedding does not fit the scope's model, and EmbedderError where the
    embedder is not the scope's.
    """
    texts = [text for text in (request.text, *request.parts) if text]
    if model is None:
        return np.zeros((0, 1), dtype=np.float32)
    if request.embedding is not None:
        return _given(request.embedding, model)
    if not texts:
        return np.zeros((0, model.dimensions), dtype=np.float32)
    chosen = embedder()
    check_model(chosen, model)
    unit, zero = unit_vectors(chosen, texts)
    return unit[~zero]


def unit_vectors(embedder: Embedder, texts: Sequence[str]) -> tuple[Vectors, Zeros]:
    """Embed texts and normalise: unit rows of shape (n, d), and which of them were zero.

    An embedder may be anybody's code: whatever it raises, and whatever else it returns than finite vectors of
    the shape that it promised, is an EmbedderError.
    """
    try:
        made = np.asarray(embedder.embed(texts), dtype=np.float64)
    except PlannerError:
        raise
    except Exception as error:
        raise EmbedderError(f"embedder {embedder.name!r} failed: {type(error).__name__}: {error}") from error
    expected = (len(texts), embedder.dimensions)
    if made.shape != expected:
        raise EmbedderError(
            f"embedder {embedder.name!r} returned an array of shape {made.shape} for {len(texts)} texts; "
            f"it must be {expected}"
        )
    try:
        return normalise(made)
    except ValueError as error:
        raise EmbedderError(f"embedder {embedder.name!r}: {error}") from None


def check_model(embedder: Embedder, model: Model) -> None:
    """Raise EmbedderError where `embedder` is not the model that the scope's vectors were made by."""
    mine = (embedder.name, embedder.revision, embedder.dimensions)
    theirs = (model.name, model.revision, model.dimensions)
    if mine != theirs:
        raise EmbedderError(
            f"this scope's vectors were made by {_described(theirs)}, the embedder is {_described(mine)}; "
            "vectors of different models cannot be compared: use the scope's embedder, or move the scope to "
            "this one with `planner reembed`; a question may bring its own `embedding`",
            scope_model=model.name,
            embedder=embedder.name,
        )


def _given(embedding: tuple[float, ...], model: Model) -> Vectors:
    if len(embedding) != model.dimensions:
        raise RequestError(
            f"embedding has {len(embedding)} dimensions, the scope's {model.name} has {model.dimensions}",
            field="embedding",
        )
    unit, zero = normalise([embedding])
    return unit[~zero]


def _described(model: tuple[str, str, int]) -> str:
    name, revision, dimensions = model
    return f"{name}{f' revision {revision}' if revision else ''} ({dimensions} dimensions)"
