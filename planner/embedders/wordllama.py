"""The default embedder: WordLlama's static token vectors, from its wheel, without the network."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from planner.errors import EmbedderError
from planner.ports import Vectors

CONFIGURATION = "l2_supercat"


class WordLlamaEmbedder:
    """Averages of WordLlama's token vectors, 256 dimensions, 32,000 tokens.

    The weights are float16: their float64 sums are exact, so a vector depends on its text alone, not on
    the batch, the order of addition or the processor. Loaded once, when first used; safe across threads.
    """

    name: ClassVar[str] = "wordllama"
    dimensions: ClassVar[int] = 256

    def __init__(self) -> None:
        """Load nothing yet."""
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, npt.NDArray[np.float32]] | None = None

    @cached_property
    def revision(self) -> str:
        """The package version and its weights."""
        return f"{version('wordllama')}/{CONFIGURATION}_{self.dimensions}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 rows of shape (len(texts), 256); a text without tokens gives zeros.

        Raises EmbedderError where the weights cannot be loaded.
        """
        tokenizer, weights = self._model()
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, encoded in zip(
            rows, tokenizer.encode_batch(list(texts), add_special_tokens=False), strict=True
        ):
            if encoded.ids:
                row[:] = weights[encoded.ids].sum(axis=0, dtype=np.float64) / len(encoded.ids)
        return rows

    def _model(self) -> tuple[Tokenizer, npt.NDArray[np.float32]]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load()
            return self._loaded


def _load() -> tuple[Tokenizer, npt.NDArray[np.float32]]:
    try:
        with _untouched_logging():
            import wordllama  # noqa: PLC0415 - half a second, needed only once texts are embedded
        model = wordllama.WordLlama.load(
            CONFIGURATION,
            cache_dir=Path(wordllama.__file__).parent,
            dim=WordLlamaEmbedder.dimensions,
            disable_download=True,
        )
    except (ImportError, OSError, ValueError) as error:
        raise EmbedderError(
            f"wordllama cannot be loaded ({error}); reinstall the wordllama package"
        ) from error
    model.tokenizer.no_padding()
    return model.tokenizer, model.embedding


@contextmanager
def _untouched_logging() -> Iterator[None]:
    """Undo what importing wordllama does to the root logger, which belongs to the application."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
