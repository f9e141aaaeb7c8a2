"""One delivery as the trace keeps it: what each envelope holds, what was skipped and cut, and no text of it.

A title or a speaker is a source's own words, so neither is kept: the references say where they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from planner.types import Delivery

TIMINGS = "timings_ms"
"""Beside the options that were in force, how long the stages took."""


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """A delivery that was made of a plan; items, skips and cuts are JSON data, as those of `Delivery`."""

    delivery_id: str
    created_at: datetime
    unit: str
    framing_version: str
    counter: str
    budget: int
    used: int
    delivery_hash: str
    options: Mapping[str, Any]
    items: Sequence[Mapping[str, Any]]
    skipped: Sequence[Mapping[str, Any]]
    cuts: Sequence[Mapping[str, Any]]
    timings: Mapping[str, float]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> DeliveryRecord:
        """Read a row of `plan_deliveries`."""
        delivery_id, created_at, unit, framing, counter, budget, used, hashed, options = row[:9]
        items, skipped, cuts = row[9:]
        kept = {name: value for name, value in options.items() if name != TIMINGS}
        return cls(
            delivery_id=str(delivery_id),
            created_at=created_at,
            unit=unit,
            framing_version=framing,
            counter=counter,
            budget=budget,
            used=used,
            delivery_hash=hashed.hex(),
            options=kept,
            items=items,
            skipped=skipped,
            cuts=cuts,
            timings=options.get(TIMINGS, {}),
        )

    def fate(self, evidence: str) -> dict[str, Any] | None:
        """Say what became of a piece of evidence: as which unit it was delivered, or why it was skipped."""
        about = {"delivery": self.delivery_id, "unit": self.unit, "budget": self.budget}
        for item in self.items:
            if evidence in item["evidence"]:
                return {**about, "delivered_as": item["unit"]}
        for skip in self.skipped:
            if skip["evidence"] == evidence:
                return {**about, "skipped": skip["reason"]}
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        return {
            "delivery_id": self.delivery_id,
            "created_at": self.created_at.isoformat(),
            "delivery_hash": self.delivery_hash,
            "framing_version": self.framing_version,
            "unit": self.unit,
            "counter": self.counter,
            "budget": self.budget,
            "used": self.used,
            "options": dict(self.options),
            "items": list(self.items),
            "skipped": list(self.skipped),
            "cuts": list(self.cuts),
            "timings_ms": dict(self.timings),
        }


def to_row(
    scope_id: UUID, delivery: Delivery, created_at: datetime, timings: Mapping[str, float]
) -> dict[str, Any]:
    """Return the parameters of the statement `persist_delivery`."""
    items = [{k: v for k, v in item.to_dict().items() if k != "speaker"} for item in delivery.items]
    return {
        "scope_id": scope_id,
        "delivery_id": delivery.delivery_id,
        "plan_id": delivery.plan.plan_id if delivery.plan else None,
        "created_at": created_at,
        "unit": delivery.unit,
        "framing_version": delivery.framing_version,
        "counter": delivery.counter,
        "budget": delivery.budget,
        "used": delivery.used,
        "delivery_hash": bytes.fromhex(delivery.delivery_hash),
        "options": json.dumps({**delivery.options, TIMINGS: dict(timings)}),
        "items": json.dumps(items),
        "skipped": json.dumps([skip.to_dict() for skip in delivery.skipped]),
        "cuts": json.dumps([cut.to_dict() for cut in delivery.cuts]),
    }
