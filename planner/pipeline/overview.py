"""The overview of a scope: what its plans did over a time, and which sources they drew on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from planner.engine import Engine
from planner.errors import RequestError
from planner.ingest import scope_id as id_of_scope
from planner.recall.frame import read_state
from planner.store.connect import run
from planner.store.retry import retried
from planner.trace.plan_id import first_id
from planner.types import Outcome

MAX_PLANS = 10_000
"""How many plans are counted, the newest."""

DRAWN_ON = 200
"""How many plans are asked which sources they drew on, the newest: each may have thousands of candidates."""

TOP_SOURCES = 10
MAX_BUCKETS = 1_000


@dataclass(frozen=True, slots=True)
class Totals:
    """Plans counted together. Budgets and use are in tokens; of budgets only those of plans that were made.

    `latency` is the median, the 95th and the 99th percentile of all stages together, in milliseconds; None
    where there was no plan. `cap_blocked` plans left `stranded` tokens unused because of the source cap.
    """

    plans: int
    planned: int
    refused: int
    failed: int
    budget: int
    used: int
    stranded: int
    cap_blocked: int
    candidates: int
    fates: Mapping[Outcome, int]
    latency: tuple[float, float, float] | None

    @property
    def utilisation(self) -> float | None:
        """The share of the budgets that was used, None where there was none."""
        return self.used / self.budget if self.budget else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON data."""
        names = ("plans", "planned", "refused", "failed", "budget", "used", "stranded", "cap_blocked")
        return {
            **{name: getattr(self, name) for name in names},
            "utilisation": self.utilisation,
            "candidates": self.candidates,
            **{fate.value: count for fate, count in self.fates.items()},
            "latency_ms": None if self.latency is None else dict(zip(_QUANTILES, self.latency, strict=True)),
        }


@dataclass(frozen=True, slots=True)
class SourceShare:
    """A source that plans drew on: how many, with how many spans of it, and their tokens."""

    source_id: str
    title: str | None
    plans: int
    spans: int
    tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Return the share as JSON data."""
        return {name: getattr(self, name) for name in ("source_id", "title", "plans", "spans", "tokens")}


@dataclass(frozen=True, slots=True)
class Overview:
    """What the plans of a scope did from `since` to `until`, in buckets of equal width, empty ones too.

    Where there were more than `limit` plans, the newest were counted. `stages` are the median and the 95th
    percentile of each in milliseconds; `sources` are those of the newest `drawn_on` plans.
    """

    scope: str
    since: datetime
    until: datetime
    width: timedelta
    limit: int
    totals: Totals
    buckets: tuple[Totals, ...]
    errors: Mapping[str, int]
    stages: Mapping[str, tuple[float, float]]
    sources: tuple[SourceShare, ...]
    drawn_on: int

    @property
    def is_capped(self) -> bool:
        """Whether there may have been more plans than were counted."""
        return self.totals.plans >= self.limit

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        return {
            "scope": self.scope,
            "since": self.since.isoformat(),
            "until": self.until.isoformat(),
            "width_s": self.width.total_seconds(),
            "capped": self.is_capped,
            "totals": self.totals.to_dict(),
            "buckets": [bucket.to_dict() for bucket in self.buckets],
            "errors": dict(self.errors),
            "stages_ms": {stage: {"p50": p50, "p95": p95} for stage, (p50, p95) in self.stages.items()},
            "sources": [source.to_dict() for source in self.sources],
            "drawn_on": self.drawn_on,
        }


_QUANTILES = ("p50", "p95", "p99")
_NONE = Totals(0, 0, 0, 0, 0, 0, 0, 0, 0, dict.fromkeys(Outcome, 0), None)


@retried
def overview(engine: Engine, scope: str, since: timedelta, *, buckets: int = 24) -> Overview:
    """Count the plans that a scope made in the last `since`. Raises UnknownScope, RequestError."""
    if since <= timedelta(0) or not 1 <= buckets <= MAX_BUCKETS:
        raise RequestError(
            f"an overview looks back over some time, in 1 to {MAX_BUCKETS} buckets", field="since"
        )
    scope_id, until = id_of_scope(scope), engine.clock()
    start, width = until - since, since / buckets
    params: dict[str, Any] = {
        "scope_id": scope_id,
        "first": first_id(start),
        "end": first_id(until + timedelta(milliseconds=1)),
        "since": start,
        "width": width.total_seconds(),
        "last": buckets - 1,
        "limit": MAX_PLANS,
        "plans": DRAWN_ON,
        "top": TOP_SOURCES,
    }
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        *counted, everything = run(conn, "overview_plans", params).fetchall()
        errors: dict[str, int] = dict(run(conn, "overview_errors", params).fetchall())
        stages = {stage: tuple(times) for stage, times in run(conn, "overview_stages", params)}
        sources = tuple(SourceShare(*row) for row in run(conn, "overview_sources", params))
    totals = _totals(everything)
    by_bucket = {row[0]: _totals(row) for row in counted}
    return Overview(
        scope=scope,
        since=start,
        until=until,
        width=width,
        limit=MAX_PLANS,
        totals=totals,
        buckets=tuple(by_bucket.get(i, _NONE) for i in range(buckets)),
        errors=errors,
        stages=stages,
        sources=sources,
        drawn_on=min(totals.plans, DRAWN_ON),
    )


def _totals(row: Sequence[Any]) -> Totals:
    _, *figures, latency = row
    fates = dict(zip(Outcome, figures[9:], strict=True))
    columns: tuple[Any, ...] = (
        *figures[:9],
        fates,
        tuple(latency) if latency and latency[0] is not None else None,
    )
    return Totals(*columns)
