"""Reading plans back: load one, and decide it again from what was stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from planner.engine import Engine
from planner.errors import UnknownPlan
from planner.ingest import scope_id as id_of_scope
from planner.store.connect import Connection, run
from planner.store.read import checked_text, slices
from planner.store.retry import retried
from planner.trace.record import Record
from planner.trace.replay import Replay, replayed
from planner.types import EvidencePlan, PlanRef, SpanRef


@retried
def load(engine: Engine, ref: PlanRef) -> EvidencePlan:
    """Return a stored plan, with the texts of its selected spans where they are not erased.

    Raises UnknownPlan, for a plan of another scope too, and IntegrityError.
    """
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        record = read_record(conn, scope_id, ref)
        return record.to_plan(read_texts(conn, scope_id, record))


def replay(engine: Engine, ref: PlanRef) -> Replay:
    """Run Phase B again from the stored candidates. Raises UnknownPlan, ReplayMismatch."""
    return replayed(recorded(engine, ref))


@retried
def recorded(engine: Engine, ref: PlanRef) -> Record:
    """Return everything that was recorded of a plan but its nodes. Raises UnknownPlan."""
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        return read_record(conn, scope_id, ref)


def read_record(conn: Connection, scope_id: UUID, ref: PlanRef) -> Record:
    """Read the same on a connection. Raises UnknownPlan."""
    params = {"scope_id": scope_id, "plan_id": UUID(ref.plan_id)}
    row = _row(conn, ref, params)
    return Record.from_rows(ref, row, run(conn, "plan_candidates", params).fetchall())


def read_as_of(conn: Connection, scope_id: UUID, ref: PlanRef) -> int:
    """Return the transaction as of which a plan was made, without reading its pool. Raises UnknownPlan."""
    params = {"scope_id": scope_id, "plan_id": UUID(ref.plan_id)}
    return Record.from_rows(ref, _row(conn, ref, params), ()).as_of


def _row(conn: Connection, ref: PlanRef, params: Mapping[str, Any]) -> tuple[Any, ...]:
    row = run(conn, "plan_row", params).fetchone()
    if row is None:
        raise UnknownPlan(f"no plan {ref}", plan=str(ref))
    return row


def read_texts(conn: Connection, scope_id: UUID, record: Record) -> dict[SpanRef, str]:
    """Read the texts of a plan's selected spans; an erased one is missing. Raises IntegrityError."""
    chosen = [v.candidate for v in record.selection.selected]
    found = slices(conn, scope_id, [c.ref for c in chosen])
    texts = {c.ref: checked_text(c.ref, data, c.text_hash) for c, data in zip(chosen, found, strict=True)}
    return {ref: text for ref, text in texts.items() if text is not None}
