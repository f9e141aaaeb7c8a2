"""Verifying a plan against its hashes and the bytes beneath it, a ledger against its chain; two plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from planner.engine import Engine
from planner.hashing import text_hash
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.explain import read_record, recorded
from planner.recall.frame import read_state
from planner.store.connect import Connection, run, streamed
from planner.store.read import keys
from planner.store.retry import retried
from planner.trace.diff import Diff, diff
from planner.trace.verify import Beneath, Chain, Entry, LedgerVerified, PlanVerified, verified
from planner.types import Candidate, PlanRef


@retried
def verify_plan(engine: Engine, ref: PlanRef) -> PlanVerified:
    """Hash a plan's stored rows again and, where they are not erased, the bytes beneath them.

    Raises UnknownPlan.
    """
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        record = read_record(conn, scope_id, ref)
        pool = [v.candidate for v in record.selection.verdicts]
        return verified(record, read_beneath(conn, scope_id, pool))


@retried
def verify_ledger(engine: Engine, scope: str) -> LedgerVerified:
    """Follow the chain of a scope's ledger from its first entry. Raises UnknownScope."""
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        chain = Chain(scope_id, read_state(conn, scope, scope_id, None).last_tx)
        for row in streamed(conn, "ledger_entries", {"scope_id": scope_id}):
            chain.follow(Entry(*row))
    return chain.end(scope)


def compare(engine: Engine, a: PlanRef, b: PlanRef) -> Diff:
    """Say what entered, left or moved between two plans of a scope. Raises RequestError, UnknownPlan."""
    return diff(recorded(engine, a), recorded(engine, b))


def read_beneath(conn: Connection, scope_id: UUID, pool: Sequence[Candidate]) -> Iterator[Beneath]:
    """Yield what lies beneath each candidate today, its bytes as a hash."""
    params = {"scope_id": scope_id, **keys([c.ref for c in pool])}
    for present, erased_tx, data, *ledger in run(conn, "beneath", params):
        yield Beneath(present, erased_tx, None if data is None else text_hash(data), *ledger)
