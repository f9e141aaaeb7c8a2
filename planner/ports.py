"""The protocols through which callers bring their own parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:  # commands that compare no vectors start without numpy
    import numpy as np
    import numpy.typing as npt

from planner.types import Candidate, Document, SpanRef

Vectors: TypeAlias = "npt.NDArray[np.float32]"

Bound = Literal["exact", "upper_bound", "estimate"]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. `name` and `revision` identify the model; a store keeps them apart."""

    @property
    def name(self) -> str:
        """The model's name, as the store knows it."""
        ...

    @property
    def revision(self) -> str:
        """What tells two builds of the model apart; empty where there is nothing to tell."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row a text, shape (len(texts), dimensions), float32, not necessarily normalised."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text, without touching the network."""

    @property
    def name(self) -> str:
        """The counter's name; it is in the plan, its stats, the hash and every response."""
        ...

    @property
    def bound(self) -> Bound:
        """Whether a count is exact, never too small, or an estimate."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, 0 or more."""
        ...


@runtime_checkable
class LedgerCounter(TokenCounter, Protocol):
    """A counter that needs only the figures of the span ledger, so that planning reads no text."""

    def count_ledger(self, ascii_bytes: int, non_ascii_chars: int, byte_length: int) -> int:
        """Return what `count` returns for a text of these figures."""
        ...


@runtime_checkable
class Rescorer(Protocol):
    """Weighs a recalled pool anew, as a cross-encoder does; `name` becomes the plan's score model."""

    @property
    def name(self) -> str:
        """The rescorer's name; the plan is hashed with `caller:<name>`."""
        ...

    def score(self, question: str, candidates: Sequence[Candidate], texts: Sequence[str]) -> Sequence[float]:
        """Return one score a candidate, finite and 0 or more; larger is better."""
        ...


class Shelf(Protocol):
    """Where delivery finds what surrounds a hit: documents, and slices of their canonical text."""

    def documents(self, refs: Sequence[SpanRef], neighbours: int | None) -> Mapping[str, Document]:
        """Return the documents that hold these spans, by key.

        Their passages are those of the spans with `neighbours` on each side, so that any two hits' runs may
        lie apart; None asks for all passages.
        """
        ...

    def key(self, ref: SpanRef) -> str:
        """Return the key of the document that holds a span."""
        ...

    def read(self, refs: Sequence[SpanRef]) -> Sequence[bytes | None]:
        """Return the bytes of ranges of canonical text, None where a version is gone. Any ranges will do."""
        ...


class Clock(Protocol):
    """Where time comes from."""

    def __call__(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...
