"""Any Python callable as an embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.errors import EmbedderError
from planner.ports import Vectors

MAX_DIMENSIONS = 16_000


@dataclass(frozen=True, slots=True)
class CallableEmbedder:
    """An embedder around `function`, which turns a list of texts into one row of `dimensions` a text.

    `name` and `revision` tell its vectors apart from those of other models: change one when they change.
    """

    name: str
    dimensions: int
    function: Callable[[list[str]], npt.ArrayLike]
    revision: str = ""

    def __post_init__(self) -> None:
        """Refuse a name or size that no store takes."""
        if not self.name or "\0" in self.name + self.revision:
            raise EmbedderError("an embedder needs a name, without NUL characters")
        if not 1 <= self.dimensions <= MAX_DIMENSIONS:
            raise EmbedderError(f"dimensions must be 1 to {MAX_DIMENSIONS}, not {self.dimensions}")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 rows of shape (len(texts), dimensions). Raises EmbedderError for anything else."""
        expected = (len(texts), self.dimensions)
        if not texts:
            return np.zeros(expected, dtype=np.float32)
        try:
            returned = np.asarray(self.function(list(texts)), dtype=np.float64)
        except Exception as error:
            raise EmbedderError(f"embedder {self.name!r} failed: {type(error).__name__}: {error}") from error
        if returned.shape != expected:
            raise EmbedderError(f"embedder {self.name!r} returned shape {returned.shape}, not {expected}")
        if not (np.abs(returned) <= np.finfo(np.float32).max).all():
            raise EmbedderError(f"embedder {self.name!r} returned a value that is no finite 32-bit float")
        return returned.astype(np.float32)
