"""The envelopes of one document, kept in step with its pieces: only what a new run changes is sealed anew."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from planner.deliver.documents import OpenDocument
from planner.deliver.envelope import (
    ERASED,
    Envelope,
    Label,
    name_label,
    place_label,
    seal,
    source_labels,
    standing_labels,
    time_label,
)
from planner.deliver.measure import Figures
from planner.deliver.pieces import Piece, cut_edges, with_run
from planner.deliver.text import Texts
from planner.deliver.units import Run
from planner.ingest.ids import stem
from planner.types import Hit, Passage, SpanRef, Volume, Whole


@dataclass(frozen=True, slots=True)
class Sealed:
    """A piece in its envelope, the evidence in it with the unit each came as, the figures of all its text."""

    piece: Piece
    evidence: tuple[tuple[int, Whole], ...]
    envelope: Envelope
    erased: bool
    figures: Figures

    @property
    def size(self) -> int:
        """The source bytes that it shows."""
        return 0 if self.erased else self.piece.ref.end - self.piece.ref.start


@dataclass(frozen=True, slots=True)
class Group:
    """The envelopes of a document in reading order, and the run that each hit became, by rank.

    `figures` are those of its text, `size` the source bytes that it shows.
    """

    runs: Mapping[int, Run]
    sealed: Sequence[Sealed]
    figures: Figures
    size: int

    @property
    def best(self) -> int:
        """The best rank in it; 0 where no hit is in it."""
        return min(self.ranks(), default=0)

    def ranks(self) -> set[int]:
        """Return the hits in it, whether they came as themselves or inside what another brought."""
        return {rank for sealed in self.sealed for rank, _ in sealed.evidence}


NO_GROUP: Final = Group({}, (), Figures(), 0)


class Binder:
    """Makes the groups of one document, each from the one before and a further run."""

    def __init__(self, document: OpenDocument, hits: Iterable[Hit], texts: Texts, tag: str) -> None:
        self.document = document
        self._hits = sorted(hits, key=lambda hit: (document.order(hit.ref), hit.rank))
        self._orders = [document.order(hit.ref)[:2] for hit in self._hits]
        self._texts = texts
        self._tag = tag

    def bind(self, group: Group, hit: Hit, run: Run) -> Group:
        """Return the group with a hit's run in it. Raises IntegrityError."""
        old, runs = group.sealed, {**group.runs, hit.rank: run}
        held = [sealed.piece for sealed in old]
        pieces = with_run(self.document, held, run)
        # What an envelope says depends on the pieces before and after it: they are sealed anew too.
        head = max(0, _same(held, pieces) - 1)
        tail = max(0, min(_same(held[::-1], pieces[::-1]), len(held) - head, len(pieces) - head) - 1)
        changed = range(head, len(pieces) - tail)
        self._read(pieces[i].ref for i in changed)
        anew = [self._sealed(pieces, i, runs) for i in changed]
        gone = old[head : len(old) - tail]
        figures = group.figures.less(sealed.figures for sealed in gone).plus(
            sealed.figures for sealed in anew
        )
        size = group.size + sum(sealed.size for sealed in anew) - sum(sealed.size for sealed in gone)
        return Group(runs, [*old[:head], *anew, *old[len(old) - tail :]], figures, size)

    def unshown(self, group: Group, run: Run) -> int:
        """Return how many bytes of a run a group does not show."""
        return sum(self._unshown(group.sealed, ref) for ref in run.ranges)

    def check(self, group: Group) -> None:
        """Compare with its hash each hit and passage that a group shows whole. Raises IntegrityError."""
        for sealed in group.sealed:
            if sealed.erased:
                continue
            for passage in self.document.inside(sealed.piece.ref):
                self._texts.check(passage.ref, passage.text_hash)
            for hit in self._inside(sealed.piece.ref):
                if hit.ref.end <= sealed.piece.ref.end:
                    self._texts.check(hit.ref, hit.text_hash)

    def _unshown(self, sealed: Sequence[Sealed], ref: SpanRef) -> int:
        size, order = ref.end - ref.start, self.document.order
        first = bisect_right(sealed, order(ref)[:2], key=lambda held: order(held.piece.ref)[:2]) - 1
        for at in range(max(first, 0), len(sealed)):
            held = sealed[at].piece.ref
            if order(held)[0] > order(ref)[0] or (held[:2] == ref[:2] and held.start >= ref.end):
                break
            if held[:2] == ref[:2]:
                size -= max(0, min(held.end, ref.end) - max(held.start, ref.start))
        return size

    def _read(self, refs: Iterable[SpanRef]) -> None:
        """Read in one call what will be shown; a version that turns out to be gone counts as erased."""
        wanted = [ref for ref in refs if not self.document.is_erased(ref)]
        self._texts.load(wanted)
        for ref in filter(self._texts.is_gone, wanted):
            self.document.erase(ref)

    def _sealed(self, pieces: Sequence[Piece], i: int, runs: Mapping[int, Run]) -> Sealed:
        piece, before = pieces[i], pieces[i - 1] if i else None
        after = pieces[i + 1] if i + 1 < len(pieces) else None
        erased = self.document.is_erased(piece.ref)
        evidence = self._evidence(piece.ref, runs)
        label = Label(evidence, *self._labels(before, piece))
        text = None if erased else self._texts.text(piece.ref)
        left_out = cut_edges(self.document, before, piece, after)
        envelope = seal(self._tag, label, text, before=left_out[0], after=left_out[1])
        return Sealed(piece, evidence, envelope, erased, Figures.of(envelope.text))

    def _evidence(self, ref: SpanRef, runs: Mapping[int, Run]) -> tuple[tuple[int, Whole], ...]:
        """Return the hits that a piece holds, by rank: those delivered from it, those wholly inside it."""
        inside = (hit for hit in self._inside(ref) if hit.rank in runs or hit.ref.end <= ref.end)
        return tuple(
            sorted((hit.rank, runs[hit.rank].unit if hit.rank in runs else "chunk") for hit in inside)
        )

    def _inside(self, ref: SpanRef) -> Sequence[Hit]:
        """Return the hits that begin in a range."""
        order = self.document.order(ref)
        low = bisect_left(self._orders, order[:2])
        return self._hits[low : bisect_left(self._orders, (order[0], ref.end))]

    def _labels(self, before: Piece | None, piece: Piece) -> tuple[str, tuple[str, ...]]:
        """Return how the place of a piece is written, and what else is said: what differs from before."""
        volume, passage = self.document.volume(piece.ref), piece.passage
        at = passage.at if passage else None
        said = before.passage.at if before and before.passage else None
        is_new = before is None or before.ref[:2] != piece.ref[:2]
        words = [*self._facts(before, volume, at)] if is_new else []
        if volume.erased:
            words.append(ERASED)
        if at != said:
            words.append(time_label(at, said))
        name = passage and (passage.speaker or _heading(passage, piece, volume))
        if name:
            words.append(name_label(name))
        return place_label(piece.ref, source=is_new), tuple(words)

    def _facts(self, before: Piece | None, volume: Volume, at: datetime | None) -> Sequence[str]:
        """Return what is known of a source; within a conversation only what did not hold before."""
        if before is None:
            known = (volume.source_id, stem(volume.source_id))
            title = None if volume.title in known else volume.title
            return source_labels(volume, title, None if volume.captured_at == at else volume.captured_at)
        standing = standing_labels(volume)
        return () if standing == standing_labels(self.document.volume(before.ref)) else standing


def _heading(passage: Passage, piece: Piece, volume: Volume) -> str:
    """Return the headings that a piece begins under but the title; where a record begins, none."""
    if piece.unit == "record" and piece.ref.start == 0:
        return ""
    path = passage.heading_path
    return " / ".join(path[1:] if path[:1] == (volume.title,) else path)


def _same(left: Sequence[Piece], right: Sequence[Piece]) -> int:
    """Return how many pieces two sequences begin with in common."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a is not b), min(len(left), len(right)))
