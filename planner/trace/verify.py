"""Whether what is stored is what was written: a plan's hashes, the bytes beneath it, the ledger's chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from planner.errors import PlannerError
from planner.hashing import plan_hash, pool_hash
from planner.store.chain import GENESIS, entry_hash
from planner.store.changes import canonical_json
from planner.trace.record import Record
from planner.trace.replay import replayed
from planner.types import NO_TEXT_HASH, Candidate, Outcome


class Beneath(NamedTuple):
    """What lies beneath a candidate today; `text_hash` is of the bytes, None where there are none."""

    present: bool
    erased_tx: int | None
    text_hash: bytes | None
    ledger_hash: bytes | None
    ledger_kind: str | None
    source_class: str | None


@dataclass(frozen=True, slots=True)
class Fault:
    """One row that is not as it was written: which one, and what is wrong with it."""

    row: str
    said: str

    def __str__(self) -> str:
        """Write both."""
        return f"{self.row}: {self.said}"


@dataclass(frozen=True, slots=True)
class PlanVerified:
    """A stored plan examined: how many candidates, how many with erased text, and every fault."""

    plan: str
    plan_hash: str | None
    pool_hash: str | None
    candidates: int
    erased: int
    faults: tuple[Fault, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        return {"ok": self.ok, **asdict(self)}


@dataclass(frozen=True, slots=True)
class LedgerVerified:
    """A scope's ledger examined. `head` is the newest entry's hash: kept elsewhere, it proves all before."""

    scope: str
    entries: int
    head: str | None
    faults: tuple[Fault, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        return {"ok": self.ok, **asdict(self)}


class Entry(NamedTuple):
    """A row of the ledger."""

    tx: int
    recorded_at: datetime
    actor: str
    action: str
    detail: Any
    entry_hash: bytes


@dataclass
class Chain:
    """Walks a ledger in order; entries are given one by one, so that a long one needs no memory."""

    scope_id: UUID
    last_tx: int
    entries: int = 0
    faults: list[Fault] = field(default_factory=list)
    _tx: int = 0
    _hash: bytes | None = GENESIS

    def follow(self, entry: Entry) -> None:
        """Take the next entry. One after a gap cannot be checked: what it is chained to is missing."""
        self._missing(entry.tx)
        if entry.tx > self.last_tx:
            self._fault(entry.tx, f"inserted: the scope's newest transaction is {self.last_tx}")
        elif self._hash is not None and self._expected(entry, self._hash) != entry.entry_hash:
            self._fault(entry.tx, f"changed: its hash is not that of its content after entry {self._tx}")
        self.entries += 1
        self._tx, self._hash = entry.tx, entry.entry_hash

    def end(self, scope: str) -> LedgerVerified:
        """Return what was found, once every entry was followed."""
        self._missing(self.last_tx + 1)
        head = self._hash.hex() if self.entries and self._hash else None
        return LedgerVerified(scope, self.entries, head, tuple(self.faults))

    def _missing(self, until: int) -> None:
        first, last = self._tx + 1, min(until - 1, self.last_tx)
        if first <= last:
            self._fault(f"{first} to {last}" if first < last else first, "missing")
            self._hash = None

    def _expected(self, entry: Entry, previous: bytes) -> bytes:
        return entry_hash(
            previous,
            scope_id=self.scope_id,
            tx=entry.tx,
            recorded_at=entry.recorded_at,
            actor=entry.actor,
            action=entry.action,
            detail=canonical_json(entry.detail),
        )

    def _fault(self, tx: int | str, said: str) -> None:
        self.faults.append(Fault(f"ledger entry {tx}", said))


def verified(record: Record, beneath: Iterable[Beneath]) -> PlanVerified:
    """Examine a plan: the hashes of its stored rows, a replay of it, and the bytes beneath its candidates.

    `beneath` is in the order of the pool. What is erased cannot be examined, and is counted.
    """
    faults = [*hash_faults(record)]
    faults += [] if faults or record.plan_hash is None else _replay_faults(record)
    erased = 0
    for verdict, found in zip(record.selection.verdicts, beneath, strict=True):
        candidate = verdict.candidate
        was_read = verdict.outcome is not Outcome.UNSLICEABLE
        erased += found.erased_tx is not None
        fault = span_fault(candidate, found, was_read=was_read)
        faults += [] if fault is None else [Fault(str(candidate.ref), fault)]
    pool = len(record.selection.verdicts)
    return PlanVerified(str(record.ref), record.plan_hash, record.pool_hash, pool, erased, tuple(faults))


def hash_faults(record: Record) -> Iterator[Fault]:
    """Hash the stored rows again, and yield each hash that is another; a failed plan has none."""
    models = {"plan_model": record.policy.plan_model, "score_model": record.score_model}
    for name, hashed in (("plan_hash", plan_hash), ("pool_hash", pool_hash)):
        stored = getattr(record, name)
        if stored is not None and (found := hashed(record.selection, **models)) != stored:
            yield Fault(name, f"{stored} is stored, the stored rows have {found}")


def span_fault(candidate: Candidate, found: Beneath, *, was_read: bool = True) -> str | None:
    """Say what of a candidate's source is not as it was planned from; None where it is, or is erased."""
    if found.erased_tx is not None:
        return None
    if not found.present:
        return "its source version is missing"
    return next(_differences(candidate, found, was_read), None)


def _differences(candidate: Candidate, found: Beneath, was_read: bool) -> Iterator[str]:
    was = candidate.text_hash
    if found.source_class != candidate.source_class:
        yield f"its source is of class {found.source_class}, it was {candidate.source_class}"
    if found.ledger_kind not in (None, candidate.kind):
        yield f"the span ledger calls it {found.ledger_kind}, it was {candidate.kind}"
    if was == NO_TEXT_HASH or not was_read:
        return
    if found.ledger_hash not in (None, was):
        yield f"the span ledger has the hash {_short(found.ledger_hash)}, it was {_short(was)}"
    if found.text_hash != was:
        yield f"its bytes have the hash {_short(found.text_hash)}, they had {_short(was)}"


def _replay_faults(record: Record) -> list[Fault]:
    try:
        replayed(record)
    except PlannerError as error:
        return [Fault("replay", str(error.detail.get("difference", error)))]
    return []


def _short(hashed: bytes | None) -> str:
    return "of nothing" if hashed is None else hashed.hex()[:16]
