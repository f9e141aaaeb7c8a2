"""What delivery reads and returns: passage, volume, document, hit; a delivery, its items, skips and cuts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from planner.types.refs import NO_TEXT_HASH, PlanRef, SourceClass, SpanRef, Trust

Unit = Literal["chunk", "window", "record", "auto"]
Whole = Literal["chunk", "window", "record"]
OnMisfit = Literal["skip", "cut"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A span in the order of its document; `position` counts the document's spans from 0."""

    ref: SpanRef
    position: int
    kind: str
    speaker: str | None = None
    at: datetime | None = None
    heading_path: tuple[str, ...] = ()
    text_hash: bytes = NO_TEXT_HASH


@dataclass(frozen=True, slots=True)
class Volume:
    """One source version of a document, with what an envelope says of it once.

    `made_from` are the references that derived text was made from; `stale` says that one of them changed or
    was erased since. `superseded_by` is the newest version where this one is not. Of an erased version only
    the fact stays.
    """

    source_id: str
    version_tx: int
    byte_length: int
    source_class: SourceClass = "truth"
    trust: Trust = "external"
    actor: str | None = None
    title: str | None = None
    uri: str | None = None
    captured_at: datetime | None = None
    erased: bool = False
    superseded_by: int | None = None
    made_from: tuple[str, ...] = ()
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """What `record` means for a hit: a source version, or a whole conversation.

    `volumes` are in reading order: one source version; or the versions of a chain that append made; or the
    sources of a conversation by their position. `passages` are in reading order: all of them, or those near
    the hits that were asked for, told by their positions; `volumes` are those that hold them. `length` counts
    the passages of the whole document. Where it is not `whole`, as a retriever's results without their
    sources, nothing is known to surround a hit: its window and its record are the chunk.
    """

    key: str
    conversation: bool
    volumes: tuple[Volume, ...]
    passages: tuple[Passage, ...]
    length: int
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked result: `rank` counts from 1, and names the evidence as `E<rank>`."""

    rank: int
    ref: SpanRef
    document: str
    text_hash: bytes = NO_TEXT_HASH


@dataclass(frozen=True, slots=True)
class DeliveredItem:
    """One envelope: the evidence that it holds, the source bytes it shows, where its body is in the text.

    `start` and `end` are bytes of the bundle's UTF-8 text; unescaped, they are the bytes of `ref`, unless
    `erased`. `evidence` is empty where the piece is only the surroundings of another.
    """

    evidence: tuple[str, ...]
    ref: SpanRef
    unit: Whole
    start: int
    end: int
    speaker: str | None = None
    erased: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON data."""
        return {
            "evidence": list(self.evidence),
            "ref": str(self.ref),
            "unit": self.unit,
            "start": self.start,
            "end": self.end,
            "speaker": self.speaker,
            "erased": self.erased,
        }


@dataclass(frozen=True, slots=True)
class Skipped:
    """A hit that is not in the bundle, and why: `over_budget`, `over_source_cap`."""

    evidence: str
    ref: SpanRef
    reason: Literal["over_budget", "over_source_cap"]

    def to_dict(self) -> dict[str, Any]:
        """Return the skip as JSON data."""
        return {"evidence": self.evidence, "ref": str(self.ref), "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Cut:
    """A unit that was delivered in part: what is shown, and how many of its bytes are left out."""

    evidence: str
    unit: Whole
    ref: SpanRef
    bytes_left_out: int

    def to_dict(self) -> dict[str, Any]:
        """Return the cut as JSON data."""
        return {
            "evidence": self.evidence,
            "unit": self.unit,
            "ref": str(self.ref),
            "bytes_left_out": self.bytes_left_out,
        }


@dataclass(frozen=True, slots=True)
class Delivery:
    """A bundle: the exact text that the model reads, and what is in it.

    `used` is the count of `text` by `counter`, never above `budget`. `sources` are tokens by source, counted
    over the bodies. `delivery_hash` is BLAKE3-256 over the text and what decided it; the same plan, unit,
    counter and budget give the same.
    """

    text: str
    items: tuple[DeliveredItem, ...]
    unit: Unit
    counter: str
    counter_bound: Literal["exact", "upper_bound", "estimate"]
    budget: int
    used: int
    framing_version: str
    plan_hash: str | None
    delivery_hash: str
    skipped: tuple[Skipped, ...] = ()
    cuts: tuple[Cut, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    plan: PlanRef | None = None
    delivery_id: str | None = None

    def to_dict(self, *, text: bool = True) -> dict[str, Any]:
        """Return the delivery as JSON data, with the same names on every surface."""
        out: dict[str, Any] = {
            "delivery_id": self.delivery_id,
            "plan": str(self.plan) if self.plan else None,
            "plan_hash": self.plan_hash,
            "delivery_hash": self.delivery_hash,
            "framing_version": self.framing_version,
            "unit": self.unit,
            "counter": self.counter,
            "counter_bound": self.counter_bound,
            "budget": self.budget,
            "used": self.used,
            "options": dict(self.options),
            "sources": dict(self.sources),
            "items": [item.to_dict() for item in self.items],
            "skipped": [skip.to_dict() for skip in self.skipped],
            "cuts": [cut.to_dict() for cut in self.cuts],
        }
        return {**out, "text": self.text} if text else out
