"""The bundle while it is being packed: what is in it, and whether a further run fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from planner.deliver.group import NO_GROUP, Binder, Group, Sealed
from planner.deliver.measure import Figures, Measure
from planner.deliver.units import Run
from planner.types import Hit

Reason = Literal["over_budget", "over_source_cap"]


@dataclass(frozen=True, slots=True)
class Contents:
    """The groups of a bundle by document, and the figures of its whole text."""

    groups: Mapping[str, Group]
    figures: Figures


class Bundle:
    """What was admitted so far, under a budget and perhaps a cap for each source."""

    def __init__(
        self,
        opening: str,
        closing: str,
        binders: Mapping[str, Binder],
        measure: Measure,
        budget: int,
        cap: int | None,
    ) -> None:
        self.binders = binders
        self.measure = measure
        self.budget = budget
        self.cap = cap
        self.opening, self.closing = opening, closing
        self.empty = Contents({}, Figures().plus(map(Figures.of, (opening, closing))))
        self.contents = self.empty

    def admit(self, hit: Hit, run: Run) -> Reason | None:
        """Take in a run where the whole text with it is within the budget, else say what it is over."""
        if self.shows(hit, run):
            return None
        if self.is_hopeless(hit, run):
            return "over_budget"
        trial = self.with_run(self.contents, hit, run)
        if self.tokens(trial) > self.budget:
            return "over_budget"
        if self.cap is not None and max(self.by_source(trial).values()) > self.cap:
            return "over_source_cap"
        self.contents = trial
        return None

    def shows(self, hit: Hit, run: Run) -> bool:
        """Tell whether every byte of a hit's run is in the bundle."""
        return self.binders[hit.document].unshown(self._group(hit), run) == 0

    def is_hopeless(self, hit: Hit, run: Run) -> bool:
        """Tell whether a hit's run cannot fit, without looking at any text."""
        group = self._group(hit)
        further = 0 if run.erased else self.binders[hit.document].unshown(group, run)
        return self.is_too_long(hit, group.size + further)

    def is_too_long(self, hit: Hit, size: int) -> bool:
        """Tell whether so many bytes of a hit's document are too many beside the other documents."""
        beside = self.contents.figures.less([self._group(hit).figures])
        return self.measure.least(size, beside) > self.budget

    def held(self) -> set[int]:
        """Return the ranks of the hits that are in the bundle."""
        return {rank for group in self.contents.groups.values() for rank in group.ranks()}

    def check(self) -> None:
        """Compare all text in it with the hashes that are known. Raises IntegrityError."""
        for key, group in self.contents.groups.items():
            self.binders[key].check(group)

    def with_run(self, contents: Contents, hit: Hit, run: Run) -> Contents:
        """Return the contents with a run among them."""
        old = contents.groups.get(hit.document, NO_GROUP)
        new = self.binders[hit.document].bind(old, hit, run)
        figures = contents.figures.less([old.figures]).plus([new.figures])
        return Contents({**contents.groups, hit.document: new}, figures)

    def tokens(self, contents: Contents) -> int:
        """Return the count of the text with these contents."""
        return self.measure.tokens(contents.figures, lambda: self.text(contents))

    def by_source(self, contents: Contents) -> Mapping[str, int]:
        """Return the tokens of the bodies of each source, in the order in which they stand."""
        found: Counter[str] = Counter()
        for sealed in in_order(contents):
            found[sealed.piece.ref.source_id] += self.measure.count(sealed.envelope.body)
        return found

    def text(self, contents: Contents) -> str:
        """Return the bundle's text: the framing, the envelopes by document, the end."""
        envelopes = (sealed.envelope.text for sealed in in_order(contents))
        return "".join((self.opening, *envelopes, self.closing))

    def _group(self, hit: Hit) -> Group:
        return self.contents.groups.get(hit.document, NO_GROUP)


def in_order(contents: Contents) -> Iterator[Sealed]:
    """Yield the envelopes: documents by their best rank, pieces by position."""
    for group in sorted(contents.groups.values(), key=lambda group: group.best):
        yield from group.sealed
