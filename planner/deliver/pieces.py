"""The stretches of a document that a bundle shows: disjoint, in reading order, each in one envelope."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.deliver.documents import OpenDocument
from planner.deliver.units import SIZES, Run
from planner.types import Passage, SpanRef, Whole

GAP: Final = 16
"""Two neighbouring passages this close, in bytes, are one stretch: a header would cost more."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of one volume, the passage that it begins in, and the bytes that cuts left out at its edges."""

    ref: SpanRef
    passage: Passage | None
    unit: Whole
    before: int = 0
    after: int = 0


def with_run(document: OpenDocument, pieces: Sequence[Piece], run: Run) -> list[Piece]:
    """Return the pieces with a run among them, merged where ranges touch or overlap."""
    out = list(pieces)
    last = len(run.ranges) - 1
    for number, ref in enumerate(run.ranges):
        piece = Piece(
            ref,
            document.passage(ref),
            run.unit,
            run.before if number == 0 else 0,
            run.after if number == last else 0,
        )
        _insert(document, out, piece)
    return out


def cut_edges(
    document: OpenDocument, before: Piece | None, piece: Piece, after: Piece | None
) -> tuple[int, int]:
    """Return the bytes left out at the edges of a piece, as far as its neighbours do not show them."""
    start, end = document.place(piece.ref)
    from_before = start - document.place(before.ref)[1] if before else start
    to_after = document.place(after.ref)[0] - end if after else piece.after
    return min(piece.before, from_before), min(piece.after, to_after)


def _insert(document: OpenDocument, pieces: list[Piece], piece: Piece) -> None:
    """Put a piece in its place, merged with those that it touches."""
    low = bisect_left(pieces, document.order(piece.ref)[:2], key=lambda held: document.order(held.ref)[:2])
    high = low
    while low and _joins(document, pieces[low - 1], piece):
        low -= 1
        piece = _merged(pieces[low], piece)
    while high < len(pieces) and _joins(document, piece, pieces[high]):
        piece = _merged(piece, pieces[high])
        high += 1
    pieces[low:high] = [piece]


def _joins(document: OpenDocument, left: Piece, right: Piece) -> bool:
    """Tell whether two pieces are one: they overlap, touch, or are neighbours with next to nothing between.

    Messages of a conversation are one only where they overlap, or are parts of one message.
    """
    gap = right.ref.start - left.ref.end
    if left.ref[:2] != right.ref[:2] or gap > GAP:
        return False
    if gap < 0 or document.is_erased(left.ref):
        return gap < 0
    if document.conversation:
        return gap == 0 and _speaker(left) == _speaker(right)
    return gap == 0 or _are_neighbours(document, left, right)


def _speaker(piece: Piece) -> str | None:
    return piece.passage.speaker if piece.passage else None


def _are_neighbours(document: OpenDocument, left: Piece, right: Piece) -> bool:
    last = document.passage(left.ref._replace(start=left.ref.end - 1))
    return (
        last is not None
        and right.passage is not None
        and last.ref.end == left.ref.end
        and right.passage.ref.start == right.ref.start
        and right.passage.position == last.position + 1
    )


def _merged(left: Piece, right: Piece) -> Piece:
    """Return one piece for two, of which `left` starts first, or with `right`."""
    starts, ends = left.ref.start < right.ref.start, right.ref.end - left.ref.end
    return Piece(
        left.ref._replace(end=max(left.ref.end, right.ref.end)),
        left.passage,
        max(left.unit, right.unit, key=SIZES.index),
        left.before if starts else max(left.before, right.before),
        max(left.after, right.after) if ends == 0 else right.after if ends > 0 else left.after,
    )
