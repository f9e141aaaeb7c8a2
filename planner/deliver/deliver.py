"""Delivery, read top to bottom: what was asked, the documents around the hits, packing, the bundle.

`read` makes a bundle of one document alone, from a place on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from planner.deliver.bundle import Bundle, Reason, in_order
from planner.deliver.cut import grapheme_ends, largest
from planner.deliver.documents import OpenDocument
from planner.deliver.envelope import FRAMING_VERSION, closing, framing, tag_of
from planner.deliver.group import Binder
from planner.deliver.measure import Measure
from planner.deliver.pack import Packer
from planner.deliver.refuse import nothing_fits
from planner.deliver.text import Texts
from planner.deliver.units import Run, stretch
from planner.errors import CounterError, InsufficientEvidence, RequestError, UnknownSpan
from planner.hashing import delivery_hash, results_bytes
from planner.ports import Shelf, TokenCounter
from planner.selection.budget import MAX_REQUEST
from planner.tokens import count_text
from planner.types import Cut, DeliveredItem, Delivery, Hit, OnMisfit, Skipped, SpanRef, Unit, evidence_id

LOOK = 64
"""Tokens whose text is looked at, at the least, for where the first grapheme cluster ends."""


@dataclass(frozen=True, slots=True)
class _Request:
    """What was asked for, checked."""

    unit: Unit
    budget: int
    counter: TokenCounter
    neighbours: int
    on_misfit: OnMisfit
    max_frac: float | None
    plan_hash: str | None

    @property
    def cap(self) -> int | None:
        """The tokens that the bodies of one source may take."""
        return None if self.max_frac is None else math.floor(self.max_frac * self.budget)


def deliver(
    hits: Sequence[Hit],
    shelf: Shelf,
    *,
    unit: Unit = "chunk",
    budget: int,
    counter: TokenCounter,
    neighbours: int = 1,
    on_misfit: OnMisfit | None = None,
    max_frac: float | None = None,
    plan_hash: str | None = None,
) -> Delivery:
    """Pack ranked hits into a bundle of at most `budget` tokens of `counter`, all of its text counted.

    `neighbours` are the passages on each side of a window; `on_misfit` is what becomes of a unit that does
    not fit (None: a record is cut, others are skipped); `max_frac` is the share of the budget that the bodies
    of one source may take (None: all). Raises RequestError, UnknownSpan, InsufficientEvidence with a budget
    that suffices, IntegrityError where text does not match its hash, CounterError.
    """
    misfit = on_misfit or ("cut" if unit == "record" else "skip")
    request = _checked(_Request(unit, budget, counter, neighbours, misfit, max_frac, plan_hash))
    ranked = _ranked(hits)
    tag = tag_of(plan_hash.encode() if plan_hash else results_bytes(ranked))
    texts = Texts(shelf)
    documents = _open(shelf, ranked, neighbours if unit in ("window", "auto") else 0)
    binders = {key: Binder(documents[key], held, texts, tag) for key, held in _by_document(ranked).items()}
    bundle = Bundle(
        framing(tag, found=bool(ranked)), closing(tag), binders, Measure(counter), budget, request.cap
    )
    packer = Packer(bundle, texts, unit, neighbours, misfit)
    refused = packer.pack(ranked)
    if not bundle.contents.groups and (ranked or bundle.tokens(bundle.empty) > budget):
        raise nothing_fits(packer, ranked, max_frac)
    bundle.check()
    return _delivery(bundle, request, ranked, refused)


def read(
    first: Hit | None,
    shelf: Shelf,
    *,
    start: int = 0,
    further: int = 0,
    behind: Callable[[SpanRef], int] = lambda _: 0,
    budget: int,
    counter: TokenCounter,
) -> Delivery:
    """Pack a document from byte `start` of a passage on: that, and of the `further` ones what fits after it.

    No piece is evidence. The passage is cut where it does not fit, and a last mark says how many bytes there
    are `behind` what is shown. None is a document without text. Raises as `deliver`.
    """
    request = _checked(_Request("record", budget, counter, 0, "cut", None, None))
    tag, texts = tag_of(results_bytes([first] if first else [])), Texts(shelf)
    documents = _open(shelf, [first], further) if first else {}
    binders = {key: Binder(document, (), texts, tag) for key, document in documents.items()}
    bundle = Bundle(
        framing(tag, found=bool(first)), closing(tag), binders, Measure(counter), budget, request.cap
    )
    needed = bundle.tokens(bundle.empty)
    if first is not None:
        needed = _read(bundle, documents[first.document], first, texts, start, further, behind)
    if needed > budget:
        raise InsufficientEvidence(
            f"nothing fits: the framing and the smallest piece take more than {budget} tokens of "
            f"{counter.name}; a budget of {needed} would do",
            reason="nothing_fits",
            sufficient_budget=needed,
        )
    bundle.check()
    return _delivery(bundle, request, (), {})


def _read(
    bundle: Bundle,
    document: OpenDocument,
    first: Hit,
    texts: Texts,
    start: int,
    further: int,
    behind: Callable[[SpanRef], int],
) -> int:
    """Take in what fits; return the tokens of the least that could have been taken in."""

    def run(ranges: Sequence[SpanRef]) -> Run:
        return Run("record", tuple(ranges), after=behind(ranges[-1]))

    def whole(more: int) -> Run:
        ranges = stretch(document, first, "window", 0, more)
        return run([ranges[0]._replace(start=start), *ranges[1:]])

    def tokens(alone: Run) -> int:
        return bundle.tokens(bundle.with_run(bundle.empty, first, alone))

    if document.is_erased(first.ref):
        erased = Run("record", (first.ref,), erased=True)
        bundle.admit(first, erased)
        return tokens(erased)
    if bundle.admit(first, whole(0)) is None:
        largest(further, lambda n: bundle.admit(first, whole(n)) is None)
        return 0
    rest = first.ref._replace(start=start)
    ends = grapheme_ends(texts, rest, bundle.measure.most_bytes(max(bundle.budget, LOOK)))
    parts = [run([rest._replace(end=end)]) for end in ends or [rest.end]]
    if bundle.admit(first, parts[0]) is None:
        largest(len(parts) - 1, lambda n: bundle.admit(first, parts[n]) is None)
    return min(tokens(parts[0]), tokens(whole(0)))


def _checked(request: _Request) -> _Request:
    """Return the request. Raises RequestError naming what is out of range, and the range."""
    if request.unit not in get_args(Unit):
        raise RequestError(f"unknown unit {request.unit!r}; the units are {', '.join(get_args(Unit))}")
    if request.on_misfit not in get_args(OnMisfit):
        raise RequestError(f"on_misfit = {request.on_misfit!r} is neither {' nor '.join(get_args(OnMisfit))}")
    if not _is_number(request.budget, int) or not 1 <= request.budget <= MAX_REQUEST:
        raise RequestError(f"budget = {request.budget!r} is out of range; ask for 1 to {MAX_REQUEST} tokens")
    if not _is_number(request.neighbours, int) or not 0 <= request.neighbours <= MAX_REQUEST:
        raise RequestError(f"neighbours = {request.neighbours!r} is not an integer, 0 or more")
    share = 1 if request.max_frac is None else request.max_frac
    if not _is_number(share, int, float) or not 0 < share <= 1:
        raise RequestError(f"max_frac = {request.max_frac!r} is not a share above 0, up to 1")
    return request


def _is_number(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _ranked(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits in rank order. Raises RequestError for ranks that are below 1 or come twice."""
    ranked = sorted(hits, key=lambda hit: hit.rank)
    for number, hit in enumerate(ranked):
        if hit.rank < 1 or (number and ranked[number - 1].rank == hit.rank):
            raise RequestError(f"{hit.ref}: rank {hit.rank} is below 1, or another hit has it too")
    return ranked


def _open(shelf: Shelf, hits: Sequence[Hit], neighbours: int) -> Mapping[str, OpenDocument]:
    """Look at the documents that hold the hits, with the passages near them. Raises UnknownSpan."""
    found = shelf.documents([hit.ref for hit in hits], neighbours) if hits else {}
    documents = {key: OpenDocument(document, shelf) for key, document in found.items()}
    for hit in hits:
        if hit.document not in documents or hit.ref[:2] not in documents[hit.document].volumes:
            raise UnknownSpan(f"{hit.ref}: the shelf has no document {hit.document!r} with this version")
    return documents


def _by_document(hits: Sequence[Hit]) -> Mapping[str, Sequence[Hit]]:
    grouped: dict[str, list[Hit]] = {}
    for hit in hits:
        grouped.setdefault(hit.document, []).append(hit)
    return grouped


def _delivery(
    bundle: Bundle, request: _Request, hits: Sequence[Hit], refused: Mapping[int, Reason]
) -> Delivery:
    """Return what was packed; its text is counted once more, whole. Raises CounterError."""
    text = bundle.text(bundle.contents)
    used = count_text(request.counter, text)
    if used > request.budget:
        name, budget = request.counter.name, request.budget
        raise CounterError(f"counter {name!r} counts {used} tokens where it counted {budget} or fewer before")
    options = {
        "neighbours": request.neighbours,
        "on_misfit": request.on_misfit,
        "max_frac": request.max_frac,
    }
    hashed = delivery_hash(
        text,
        framing_version=FRAMING_VERSION,
        unit=request.unit,
        counter=request.counter.name,
        budget=request.budget,
        neighbours=request.neighbours,
        on_misfit=request.on_misfit,
        max_frac=request.max_frac,
        plan_hash=request.plan_hash,
    )
    return Delivery(
        text=text,
        items=tuple(_items(bundle)),
        unit=request.unit,
        counter=request.counter.name,
        counter_bound=request.counter.bound,
        budget=request.budget,
        used=used,
        framing_version=FRAMING_VERSION,
        plan_hash=request.plan_hash,
        delivery_hash=hashed,
        skipped=tuple(
            Skipped(evidence_id(hit.rank), hit.ref, refused[hit.rank]) for hit in hits if hit.rank in refused
        ),
        cuts=tuple(_cuts(bundle, hits)),
        sources=bundle.by_source(bundle.contents),
        options=options,
    )


def _items(bundle: Bundle) -> Iterator[DeliveredItem]:
    """Yield the envelopes with where their bodies are in the text, in bytes."""
    at = len(bundle.opening.encode())
    for sealed in in_order(bundle.contents):
        envelope, passage = sealed.envelope, sealed.piece.passage
        start = at + len(envelope.head.encode())
        yield DeliveredItem(
            evidence=tuple(evidence_id(rank) for rank, _ in sealed.evidence),
            ref=sealed.piece.ref,
            unit=sealed.piece.unit,
            start=start,
            end=start + len(envelope.body.encode()),
            speaker=passage.speaker if passage else None,
            erased=sealed.erased,
        )
        at += sealed.figures.byte_length


def _cuts(bundle: Bundle, hits: Sequence[Hit]) -> Iterator[Cut]:
    """Yield, by rank, the units that were delivered in part, with what is shown of the hit's own version."""
    for hit in hits:
        group = bundle.contents.groups.get(hit.document)
        run = group.runs.get(hit.rank) if group else None
        if run is not None and run.before + run.after:
            own = [ref for ref in run.ranges if ref[:2] == hit.ref[:2]]
            shown = own[0]._replace(end=own[-1].end)
            yield Cut(evidence_id(hit.rank), run.unit, shown, run.before + run.after)
