"""What was changed behind the planner's back is found and named: in a plan, beneath it, and in the ledger."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planner import EvidencePlan, Planner
from planner.errors import UnknownPlan, UnknownScope
from planner.ingest import scope_id
from planner.store.chain import GENESIS, entry_hash
from planner.store.changes import canonical_json
from planner.trace.verify import PlanVerified
from tests.integration.graph import Connection, Graph, ask, fresh_scope
from tests.integration.tampering import tampering


def planned(planner: Planner, scope: str) -> EvidencePlan:
    """Plan from nested spans and others, so that duplicates and rejections are in the pool."""
    graph = Graph().source("s", "one two six ten and eleven", [(0, 11), (0, 3), (12, 26)])
    graph.node("whole", 0, spans=[("s", 0, 11), ("s", 0, 3), ("s", 12, 26)])
    graph.node("b", 20, text="Some words").node("c", 30, text="Some other").into(planner, scope)
    return ask(planner, scope, counter="utf8-bytes-v1", budget_tokens=24)


def faults(found: PlanVerified) -> dict[str, str]:
    return {fault.row: fault.said for fault in found.faults}


def test_a_plan_as_written_has_no_fault(planner: Planner, scope: str) -> None:
    plan = planned(planner, scope)
    found = planner.verify_plan(plan.ref)
    assert (found.ok, found.faults, found.erased) == (True, (), 0)
    assert (found.candidates, found.plan_hash) == (plan.stats["candidates"], plan.plan_hash)
    assert {"duplicate", "over_budget"} <= {span.verdict.outcome.value for span in plan.rejected}


ROWS = {
    "UPDATE planner.plan SET plan_hash = sha256('x') WHERE scope_id = %s": {"plan_hash"},
    "UPDATE planner.plan SET used = used - 1 WHERE scope_id = %s": {"plan_hash", "pool_hash"},
    "UPDATE planner.plan SET stats = stats || '{\"merged\": 9}' WHERE scope_id = %s": {
        "plan_hash",
        "pool_hash",
    },
    "UPDATE planner.plan_candidate SET weight_bits = weight_bits + 1 WHERE rank = 0 AND scope_id = %s": {
        "plan_hash",
        "pool_hash",
    },
    "DELETE FROM planner.plan_candidate WHERE outcome = 'over_budget' AND scope_id = %s": {"pool_hash"},
    "DELETE FROM planner.plan_candidate WHERE rank = 0 AND scope_id = %s": {"plan_hash", "pool_hash"},
    "UPDATE planner.plan_candidate SET duplicate_of = 1 WHERE outcome = 'duplicate' AND scope_id = %s": {
        "replay"
    },
}


@pytest.mark.parametrize("statement", ROWS)
def test_a_changed_row_of_the_trace_is_found(
    planner: Planner, conn: Connection, scope: str, statement: str
) -> None:
    plan = planned(planner, scope)
    tampering(conn, scope)(statement)
    assert ROWS[statement] == faults(planner.verify_plan(plan.ref)).keys()


BENEATH = {
    "UPDATE planner.source_version SET body = overlay(body PLACING 'S' FROM 1) WHERE source_id = 's'"
    " AND scope_id = %s": {"s@1:0-3": "its bytes", "s@1:0-11": "its bytes"},
    "UPDATE planner.source SET class = 'cache' WHERE source_id = 'b.txt' AND scope_id = %s": {
        "b.txt@1:0-10": "its source is of class cache, it was truth"
    },
    "DELETE FROM planner.source_version WHERE source_id = 'c.txt' AND scope_id = %s": {
        "c.txt@1:0-10": "its source version is missing"
    },
    "UPDATE planner.span SET text_hash = sha256('x') WHERE source_id = 'b.txt' AND scope_id = %s": {
        "b.txt@1:0-10": "the span ledger"
    },
}


@pytest.mark.parametrize("statement", BENEATH)
def test_changed_bytes_beneath_a_plan_are_named_by_span(
    planner: Planner, conn: Connection, scope: str, statement: str
) -> None:
    plan = planned(planner, scope)
    tampering(conn, scope)(statement)
    found = faults(planner.verify_plan(plan.ref))
    assert found.keys() == BENEATH[statement].keys()
    assert all(found[ref].startswith(said) for ref, said in BENEATH[statement].items())


def test_what_is_erased_is_counted_and_no_fault_and_replays_as_before(
    planner: Planner, conn: Connection, scope: str
) -> None:
    plan = planned(planner, scope)
    planner.erase(scope, "s")
    found = planner.verify_plan(plan.ref)
    assert (found.ok, found.erased) == (True, 3)
    assert planner.replay(plan.ref).plan_hash == plan.plan_hash
    loaded = planner.load(plan.ref)
    assert {s.verdict.candidate.source_id for s in loaded.spans if s.text is None} == {"s"}
    tampering(conn, scope)(
        "UPDATE planner.plan_candidate SET tokens = 1 WHERE source_id = 's' AND rank = 0 AND scope_id = %s"
    )
    assert not planner.verify_plan(plan.ref).ok


def test_a_plan_that_failed_has_nothing_that_could_be_wrong(
    planner: Planner, conn: Connection, scope: str
) -> None:
    plan = planned(planner, scope)
    tamper = tampering(conn, scope)
    tamper(
        "UPDATE planner.plan SET outcome = 'failed', error_code = 'x', plan_hash = NULL, pool_hash = NULL"
        " WHERE scope_id = %s"
    )
    tamper("DELETE FROM planner.plan_candidate WHERE scope_id = %s")
    found = planner.verify_plan(plan.ref)
    assert (found.ok, found.candidates, found.plan_hash) == (True, 0, None)
    with pytest.raises(UnknownPlan):
        planner.verify_plan(f"{fresh_scope()}:{plan.plan_id}")


@pytest.fixture
def ledger(planner: Planner, scope: str) -> str:
    """Give a scope with five ledger entries."""
    for i in range(5):
        Graph().node(f"n{i}", i, text=f"Entry {i}.").into(planner, scope)
    return scope


def test_an_untouched_ledger_holds(planner: Planner, conn: Connection, ledger: str) -> None:
    found = planner.verify_ledger(ledger)
    assert (found.ok, found.entries, found.faults) == (True, 5, ())
    row = conn.execute(
        "SELECT entry_hash FROM planner.ledger WHERE tx = 5 AND scope_id = %s", (scope_id(ledger),)
    ).fetchone()
    assert row is not None
    assert found.head == row[0].hex()
    with pytest.raises(UnknownScope):
        planner.verify_ledger(fresh_scope())


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("actor", "somebody"),
        ("action", "nothing"),
        ("detail", '{"sources": 9}'),
        ("recorded_at", "2001-01-01T00:00:00Z"),
        ("entry_hash", b"\0" * 32),
    ],
)
def test_a_changed_entry_is_named(
    planner: Planner, conn: Connection, ledger: str, change: str, value: object
) -> None:
    tampering(conn, ledger)(f"UPDATE planner.ledger SET {change} = %s WHERE tx = 3 AND scope_id = %s", value)
    found = planner.verify_ledger(ledger)
    said = {fault.row: fault.said for fault in found.faults}
    # An entry's hash is what the next one is chained to: both are not what they were.
    expected = {"ledger entry 3", "ledger entry 4"} if change == "entry_hash" else {"ledger entry 3"}
    assert said.keys() == expected
    assert said["ledger entry 3"] == "changed: its hash is not that of its content after entry 2"


@pytest.mark.parametrize(
    ("gone", "named"),
    [((1,), "1"), ((3,), "3"), ((2, 3, 4), "2 to 4"), ((5,), "5"), ((1, 2, 3, 4, 5), "1 to 5")],
)
def test_missing_entries_are_named(
    planner: Planner, conn: Connection, ledger: str, gone: tuple[int, ...], named: str
) -> None:
    tampering(conn, ledger)("DELETE FROM planner.ledger WHERE tx = ANY (%s) AND scope_id = %s", list(gone))
    found = planner.verify_ledger(ledger)
    assert [(f.row, f.said) for f in found.faults] == [(f"ledger entry {named}", "missing")]
    assert found.entries == 5 - len(gone)


def test_an_inserted_entry_is_named_though_it_is_chained(
    planner: Planner, conn: Connection, ledger: str
) -> None:
    scope = scope_id(ledger)
    row = conn.execute(
        "SELECT recorded_at, actor, action, detail, entry_hash FROM planner.ledger"
        " WHERE tx = 5 AND scope_id = %s",
        (scope,),
    ).fetchone()
    assert row is not None
    recorded_at, actor, action, detail, previous = row
    forged = {"recorded_at": recorded_at + timedelta(1), "actor": actor, "action": action}
    text = canonical_json(detail)
    hashed = entry_hash(previous, scope_id=scope, tx=6, detail=text, **forged)
    tampering(conn, ledger)(
        "INSERT INTO planner.ledger (tx, recorded_at, actor, action, detail, entry_hash, scope_id)"
        " VALUES (6, %s, %s, %s, %s, %s, %s)",
        *forged.values(),
        text,
        hashed,
    )
    (fault,) = planner.verify_ledger(ledger).faults
    assert str(fault) == "ledger entry 6: inserted: the scope's newest transaction is 5"


def test_an_entry_put_in_the_place_of_another_breaks_the_chain_after_it(
    planner: Planner, conn: Connection, ledger: str
) -> None:
    """Whoever writes an entry anew with a hash that fits cannot make the next one fit as well."""
    scope = scope_id(ledger)
    row = conn.execute(
        "SELECT recorded_at FROM planner.ledger WHERE tx = 1 AND scope_id = %s", (scope,)
    ).fetchone()
    assert row is not None
    forged = entry_hash(
        GENESIS, scope_id=scope, tx=1, recorded_at=row[0], actor="me", action="ingest", detail="{}"
    )
    tampering(conn, ledger)(
        "UPDATE planner.ledger SET actor = 'me', action = 'ingest', detail = '{}', entry_hash = %s"
        " WHERE tx = 1 AND scope_id = %s",
        forged,
    )
    (fault,) = planner.verify_ledger(ledger).faults
    assert str(fault) == "ledger entry 2: changed: its hash is not that of its content after entry 1"
