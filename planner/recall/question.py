"""The question as vectors: one a formulation, unit length, in the space of the scope's model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.errors import EmbedderError, RequestError
from planner.ports import Embedder, Vectors
from planner.recall.frame import Model
from planner.recall.score import normalise
from planner.request import PlanRequest


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
    unit, zero = normalise(chosen.embed(texts))
    return unit[~zero]


def check_model(embedder: Embedder, model: Model) -> None:
    """Raise EmbedderError where `embedder` is not the model that the scope's vectors were made by."""
    mine = (embedder.name, embedder.revision, embedder.dimensions)
    theirs = (model.name, model.revision, model.dimensions)
    if mine != theirs:
        raise EmbedderError(
            f"this scope's vectors were made by {_described(theirs)}, the embedder is {_described(mine)}; "
            "vectors of different models cannot be compared: use the scope's embedder, or give `embedding`",
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
