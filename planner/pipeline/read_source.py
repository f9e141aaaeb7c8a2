"""Reading a source through as a model may: bundle after bundle, each within a budget, from a place on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from planner.deliver.deliver import read
from planner.engine import Engine
from planner.errors import InsufficientEvidence, RequestError, UnknownSpan
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.deliver import refused
from planner.pipeline.explain import read_record
from planner.pipeline.text import SourceText, read_version
from planner.request import DeliverRequest
from planner.store.connect import Connection, run
from planner.store.read import slices
from planner.store.retry import retried
from planner.store.shelf import ScopeShelf
from planner.tokens import counter as counter_named
from planner.trace.citation import cited
from planner.types import OPEN_TX, Delivery, Hit, PlanRef, SpanRef

MAX_PASSAGES = 1_000
"""The most passages of one bundle; a larger budget is left in part."""

PLACE = r"^[0-9]{1,19}:[0-9]{1,19}$"
"""Version and byte, as an envelope writes them behind the source: `a.md@7:120+60` begins at `7:120`."""

_PLACE = re.compile(PLACE)


@dataclass(frozen=True, slots=True)
class SourceReading:
    """A bundle of a source's passages; the next one begins at `next_start`, None where this is the last.

    `left_out` counts the bytes of the source behind what is shown.
    """

    scope: str
    source_id: str
    version_tx: int
    delivery: Delivery
    next_start: str | None = None
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        names = ("scope", "source_id", "version_tx", "next_start", "left_out")
        return {**{name: getattr(self, name) for name in names}, **self.delivery.to_dict()}


@dataclass(frozen=True, slots=True)
class _Opening:
    """The passage that a reading begins in, at byte `start`, and how many follow it.

    `offsets` are where the versions of its chain begin in the whole text, `end` where the last passage ends.
    """

    ref: SpanRef
    start: int
    further: int
    offsets: Mapping[int, int]
    end: int

    def behind(self, ref: SpanRef) -> int:
        """Return how many bytes of the chain come after a range."""
        return self.end - self.offsets[ref.version_tx] - ref.end


@retried
def read_source(
    engine: Engine, scope: str, source_id: str, request: DeliverRequest, start: str | None = None
) -> SourceReading:
    """Deliver the passages of a source from a place on, `<version>:<byte>`, else from its beginning.

    Of the newest version and all that it was appended to, or where the place is in an older one, of that. The
    operator's `max_budget` bounds the budget. Raises RequestError, UnknownScope, UnknownSource, UnknownSpan
    where the place is behind the end, InsufficientEvidence, IntegrityError, CounterError.
    """
    settings, scope_id, place = engine.settings, id_of_scope(scope), _place(start)
    counter = counter_named(request.counter or settings.counter, engine.counters)
    asked = request.budget_tokens or settings.default_budget
    budget = min(asked, settings.max_budget or asked)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        found = read_version(conn, scope, scope_id, source_id, None)
        if place is not None and not found.base_tx <= place[0] <= found.version_tx:
            found = read_version(conn, scope, scope_id, source_id, place[0])
        shelf = ScopeShelf(conn, scope_id, found.version_tx)
        opening = _opening(conn, scope_id, found, place)
        if opening is None:
            made = read(None, shelf, budget=budget, counter=counter)
            return SourceReading(scope, source_id, found.version_tx, made)
        try:
            made = read(
                Hit(1, opening.ref, shelf.key(opening.ref)),
                shelf,
                start=opening.start,
                further=min(opening.further, MAX_PASSAGES - 1),
                behind=opening.behind,
                budget=budget,
                counter=counter,
            )
        except InsufficientEvidence as error:
            raise refused(error, None, settings.max_budget) from None
    last = made.items[-1]
    left = 0 if last.erased else opening.behind(last.ref)
    following = f"{last.ref.version_tx}:{last.ref.end}" if left else None
    return SourceReading(scope, source_id, found.version_tx, made, following, left)


@retried
def evidence_ref(engine: Engine, ref: PlanRef, evidence: str) -> SpanRef:
    """Return where a plan's evidence, `E<rank>` or a span, stands as of the plan.

    Raises UnknownPlan, UnknownSpan.
    """
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        made = read_record(conn, scope_id, ref).to_plan({})
        span = cited(made, evidence)
        if span is None:
            raise UnknownSpan(f"the plan {ref} selected no evidence {evidence!r}", plan=str(ref))
        candidate = span.verdict.candidate
        shelf = ScopeShelf(conn, scope_id, made.as_of)
        return shelf.standing([(candidate.ref, candidate.text_hash)])[0]


def _place(start: str | None) -> tuple[int, int] | None:
    if start is None:
        return None
    if _PLACE.fullmatch(start) is None:
        raise RequestError(f"start = {start!r}: write <version>:<byte>, as in 7:120", field="start")
    version, _, byte = start.partition(":")
    if max(int(version), int(byte)) > OPEN_TX:
        raise RequestError(f"start = {start!r}: no version and no text is that long", field="start")
    return int(version), int(byte)


def _opening(
    conn: Connection, scope_id: UUID, found: SourceText, place: tuple[int, int] | None
) -> _Opening | None:
    """Return the passage that a place is in or before; None where the source has no text.

    Raises UnknownSpan for a place behind the end, RequestError for one inside a character.
    """
    version, byte = place or (found.base_tx, 0)
    chain = {"scope_id": scope_id, "source_id": found.source_id, "base_tx": found.base_tx}
    params = {**chain, "version_tx": found.version_tx, "from_tx": version, "from_byte": byte}
    row = run(conn, "text_from", params).fetchone()
    if row is None:
        if place is None:
            return None
        raise UnknownSpan(f"nothing of {found.source_id!r} is at {version}:{byte} or behind it")
    tx, start, end, ordinal, last_tx, last_end = row
    ref, at = SpanRef(found.source_id, tx, start, end), byte if tx == version and byte > start else start
    if at > start:
        (data,) = slices(conn, scope_id, [ref._replace(start=at, end=at + 1)])
        if data is not None and data[0] & 0xC0 == 0x80:
            raise RequestError(f"start = {version}:{byte} is inside a character", field="start")
    versions = {**chain, "first_tx": found.base_tx, "last_tx": last_tx}
    offsets, length = {}, 0
    for version_tx, byte_length in run(conn, "text_lengths", versions):
        offsets[version_tx], length = length, length + byte_length
    return _Opening(ref, at, found.total - ordinal - 1, offsets, offsets[last_tx] + last_end)
