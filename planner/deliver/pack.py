"""Filling the budget: whole units in rank order, upgrades, cuts (delivery.md, "Units").

A unit is admitted if and only if the count of the whole text with it is within the budget. What is in stays
in, and only grows: a run is tried by taking it in where it fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from planner.deliver.bundle import Bundle, Reason
from planner.deliver.cut import grapheme_ends, largest
from planner.deliver.documents import OpenDocument
from planner.deliver.text import Texts
from planner.deliver.units import Run, least_size, part, possible, room, stretch, whole_run
from planner.types import Hit, OnMisfit, SpanRef, Unit, Whole

BATCH: Final = 64
"""Hits whose text is read in one call."""

READ_AHEAD: Final = 1 << 16
"""Bytes of a run above which it is read only when it is tried."""


class Packer:
    """Packs ranked hits into a bundle."""

    def __init__(
        self, bundle: Bundle, texts: Texts, unit: Unit, neighbours: int, on_misfit: OnMisfit
    ) -> None:
        self.bundle = bundle
        self.unit: Whole = "chunk" if unit == "auto" else unit
        self.cuts = on_misfit == "cut"
        self._upgrades = unit == "auto"
        self._texts = texts
        self._neighbours = neighbours
        self._records: dict[str, Run] = {}
        self._tried: dict[str, Reason | None] = {}

    def pack(self, hits: Sequence[Hit]) -> Mapping[int, Reason]:
        """Pack hits, given in rank order; return by rank why some are not in the bundle."""
        refused: dict[int, Reason] = {}
        for hit in self._read_ahead(hits, self.unit):
            reason = self._whole(hit, self.possible(hit, self.unit))
            if reason and self.cuts:
                reason = self._cut(hit)
            if reason:
                refused[hit.rank] = reason
        if self._upgrades:
            for hit in self._read_ahead([hit for hit in hits if hit.rank not in refused], "window"):
                if self._whole(hit, self.possible(hit, "window")) is None:
                    self._whole(hit, self.possible(hit, "record"))
        held = self.bundle.held()
        return {rank: reason for rank, reason in refused.items() if rank not in held}

    def document(self, hit: Hit) -> OpenDocument:
        """Return the document of a hit."""
        return self.bundle.binders[hit.document].document

    def possible(self, hit: Hit, unit: Whole) -> Whole:
        """Return what a hit can become."""
        return possible(self.document(hit), hit, unit)

    def run(self, hit: Hit, unit: Whole) -> Run:
        """Return the run of a hit's whole unit, if that is possible; hits of a document share its record."""
        run = self._records.get(hit.document) if unit == "record" else None
        if run is None:
            run = whole_run(self.document(hit), hit, unit, self._neighbours)
        if unit == "record":
            self._records[hit.document] = run
        return run

    def around(self, hit: Hit, whole: Run, before: int, after: int) -> Run:
        """Return the part of a whole run with so many passages before and after the hit's own."""
        document = self.document(hit)
        return part(document, whole, stretch(document, hit, whole.unit, before, after))

    def beginning(self, hit: Hit, whole: Run, end: int) -> Run:
        """Return the part of a whole run that is the hit up to a byte."""
        return part(self.document(hit), whole, (hit.ref._replace(end=end),))

    def ends(self, hit: Hit, tokens: int) -> list[int]:
        """Return where a hit may be cut inside so that its beginning could fit into so many tokens."""
        return grapheme_ends(self._texts, hit.ref, self.bundle.measure.most_bytes(tokens))

    def _whole(self, hit: Hit, unit: Whole) -> Reason | None:
        """Take in a whole unit. A record is tried once: it is in, or the bundle has only grown since."""
        if unit == "record" and hit.document in self._tried:
            return self._tried[hit.document]
        reason: Reason | None = "over_budget"
        if not self.bundle.is_too_long(hit, least_size(self.document(hit), hit, unit)):
            reason = self.bundle.admit(hit, self.run(hit, unit))
        if unit == "record":
            self._tried[hit.document] = reason
        return reason

    def _cut(self, hit: Hit) -> Reason | None:
        """Take in the largest part of a unit that fits around the hit, else as much of the hit as fits.

        A hit that came with an earlier one is left at that.
        """
        document = self.document(hit)
        held = document.positions(hit.ref)
        if document.is_erased(hit.ref):
            return "over_budget"
        if self.bundle.shows(hit, self.run(hit, "chunk")):
            return None
        whole = self.run(hit, self.possible(hit, self.unit))
        if held is None or whole.unit == "chunk" or self.bundle.admit(hit, self.around(hit, whole, 0, 0)):
            return self._cut_inside(hit, whole)
        before, after = room(document, held, whole.unit, self._neighbours)

        def fits(earlier: int, later: int) -> bool:
            run = self.around(hit, whole, min(earlier, before), min(later, after))
            return self.bundle.admit(hit, run) is None

        both = largest(max(before, after), lambda n: fits(n, n))
        more = largest(after - both, lambda n: fits(both, both + n))
        largest(before - both, lambda n: fits(both + n, both + more))
        return None

    def _cut_inside(self, hit: Hit, whole: Run) -> Reason | None:
        """Take in the hit's beginning, up to the last grapheme cluster that fits."""
        ends = self.ends(hit, self.bundle.budget)
        reason = self.bundle.admit(hit, self.beginning(hit, whole, ends[0])) if ends else "over_budget"
        if reason is None:
            admit = self.bundle.admit
            largest(len(ends) - 1, lambda n: admit(hit, self.beginning(hit, whole, ends[n])) is None)
        return reason

    def _read_ahead(self, hits: Sequence[Hit], unit: Whole) -> Iterator[Hit]:
        """Yield the hits; the text that the next ones need, if they can fit, is read in one call."""
        for start in range(0, len(hits), BATCH):
            batch = hits[start : start + BATCH]
            self._texts.load(ref for hit in batch for ref in self._wanted(hit, unit))
            yield from batch

    def _wanted(self, hit: Hit, unit: Whole) -> tuple[SpanRef, ...]:
        """Return what a hit needs; of a record only the hit itself, for there may be too much of it."""
        if (unit == "record" and not self.cuts) or self.document(hit).is_erased(hit.ref):
            return ()
        run = self.run(hit, "chunk" if unit == "record" else self.possible(hit, unit))
        return run.ranges if run.size <= READ_AHEAD and not self.bundle.is_hopeless(hit, run) else ()
