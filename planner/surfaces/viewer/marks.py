"""The text of a source cut into runs, each marked by what became of the spans that it is of. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from planner.pipeline.text import Piece
from planner.types import SpanRef


class Mark(StrEnum):
    """What became of a run of text; the first of these where spans overlap."""

    SELECTED = "selected"
    REJECTED = "rejected"
    NEVER = "never"
    BETWEEN = "between"


_ORDER = {mark: place for place, mark in enumerate(Mark)}


@dataclass(frozen=True, slots=True)
class Run:
    """Text that is marked alike: `refs` are the spans that it is of, `begins` those that begin with it."""

    text: str
    mark: Mark
    refs: tuple[SpanRef, ...] = ()
    begins: tuple[SpanRef, ...] = ()
    ends: tuple[SpanRef, ...] = ()


def runs(piece: Piece, spans: Sequence[SpanRef], marks: Mapping[SpanRef, Mark]) -> list[Run]:
    """Cut a piece at every end of a span within it; what is of no span is marked as between them."""
    data, first = piece.text.encode("utf-8", "replace"), piece.ref.start
    own = [ref for ref in spans if ref[:2] == piece.ref[:2] and ref.start < piece.ref.end and ref.end > first]
    edges = sorted({first, first + len(data), *_within(piece.ref, own)})
    out = []
    active: list[SpanRef] = []
    begin = {edge: [ref for ref in own if max(ref.start, first) == edge] for edge in edges}
    for start, end in pairwise(edges):
        active = [ref for ref in active if ref.end > start] + begin[start]
        text = data[start - first : end - first].decode("utf-8", "replace")
        mark = min(
            (marks.get(ref, Mark.NEVER) for ref in active), key=_ORDER.__getitem__, default=Mark.BETWEEN
        )
        ends = tuple(ref for ref in active if ref.end == end)
        out.append(Run(text, mark, tuple(active), tuple(begin[start]), ends))
    return out


def _within(piece: SpanRef, refs: Sequence[SpanRef]) -> set[int]:
    return {at for ref in refs for at in (ref.start, ref.end) if piece.start < at < piece.end}
