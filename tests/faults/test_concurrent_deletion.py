"""A scope is deleted while others write, plan and prune in it: each is done or says why, nothing stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from planner import Planner
from planner.errors import StoreUnavailable, UnknownScope
from tests.faults.conftest import Survived
from tests.faults.crew import WORDS, Crew, await_waiting, connect, deadlocks, held, lost, while_writing
from tests.faults.invariants import check_invariants, check_vectors, rows_left, session
from tests.faults.work import TALK, delete, inhabit, prune_trace

DOCUMENT = "The first at 5.\n\nThe second at 15."
CHANGED = "The first at 5.\n\nThe third at 25."


@pytest.fixture
def planner(database_url: str) -> Iterator[Planner]:
    """Give a planner on a database of its own; its scope `s` holds a document, a conversation and a plan."""
    with connect(database_url, pool_size=4) as planner:
        furnish(planner)
        yield planner


def furnish(planner: Planner) -> None:
    planner.ingest_text("s", "doc.md", DOCUMENT)
    planner.append("s", TALK, [{"content": "Hello at 35.", "id": "1"}])
    planner.plan("s", "at 5", counter=WORDS)


def current(url: str) -> list[str]:
    """Return the texts of the current nodes that have one."""
    with session(url) as conn:
        found = conn.execute(
            "SELECT DISTINCT convert_from(substring(v.body FROM ns.span_start::int + 1"
            "   FOR (ns.span_end - ns.span_start)::int), 'UTF8')"
            " FROM planner.node n"
            " JOIN planner.node_span ns ON (ns.scope_id, ns.node_id) = (n.scope_id, n.node_id)"
            "  AND ns.node_tx_from = n.tx_from"
            " JOIN planner.source_version v ON v.scope_id = n.scope_id"
            "  AND (v.source_id, v.version_tx) = (ns.source_id, ns.version_tx)"
            " WHERE n.tx_to = 9223372036854775807 ORDER BY 1"
        )
        return [text for (text,) in found]


def test_a_plan_whose_scope_is_deleted_before_it_is_traced_says_so_and_leaves_nothing(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    class Late:
        name = "late"

        def score(self, question: str, candidates: Any, texts: Any) -> list[float]:
            planner.delete_scope("s")
            return [1.0] * len(candidates)

    with pytest.raises(UnknownScope, match="deleted"):
        planner.plan("s", "at 5", counter=WORDS, rescore=Late())
    survived("the scope is deleted meanwhile", "plan", sum(rows_left(database_url, "s").values()))


def test_what_is_delivered_of_a_plan_whose_scope_is_deleted_meanwhile_is_not_kept(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    plan = planner.plan("s", "at 5", counter=WORDS)
    with pytest.raises(UnknownScope, match="deleted"):
        while_writing(planner, lambda: planner.delete_scope("s")).deliver(plan)
    survived("the scope is deleted meanwhile", "deliver", sum(rows_left(database_url, "s").values()))


def test_a_deletion_waits_for_a_plan_that_is_being_traced(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    with ThreadPoolExecutor(1) as thread, session(database_url) as conn:
        with held(
            database_url, "s", "plan", "INSERT", lambda: planner.plan("s", "at 5", counter=WORDS)
        ) as plan:
            deletion = thread.submit(planner.delete_scope, "s")
            await_waiting(conn, 1, [deletion], lock="transactionid")
        assert plan.result().spans
        assert deletion.result().sources == 2
    survived("a plan is being traced", "scope delete", sum(rows_left(database_url, "s").values()))


@pytest.mark.parametrize("writer", ["ingest", "append"])
def test_a_writer_whose_scope_is_deleted_meanwhile_begins_it_anew(
    planner: Planner, database_url: str, survived: Survived, writer: str
) -> None:
    late = while_writing(planner, lambda: planner.delete_scope("s"))
    if writer == "ingest":
        report, texts = late.ingest_text("s", "doc.md", CHANGED), ["The first at 5.", "The third at 25."]
    else:
        report, texts = late.append("s", TALK, [{"content": "Again at 45.", "id": "2"}]), ["Again at 45."]
    assert report.sources[0].version_tx == 1
    check_invariants(database_url, "s")
    check_vectors(database_url, "s")
    survived("the scope is deleted meanwhile", writer, lost(texts, current(database_url)))


def test_a_writer_is_not_misled_by_another_scope_of_the_same_name_and_age(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    def again() -> None:
        planner.delete_scope("s")
        planner.ingest_text("s", "other.md", "Another at 55.")
        planner.ingest_text("s", "third.md", "One more at 65.")

    while_writing(planner, again).ingest_text("s", "doc.md", CHANGED)
    expected = ["Another at 55.", "One more at 65.", "The first at 5.", "The third at 25."]
    check_invariants(database_url, "s")
    check_vectors(database_url, "s")
    missing = lost(expected, current(database_url))
    survived("the scope is deleted and made anew meanwhile", "ingest", missing)


def test_a_scope_that_is_half_deleted_is_whole_and_can_be_written_and_deleted(
    planner: Planner, database_url: str, survived: Survived, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def lose(**options: Any) -> Iterator[Any]:
        raise StoreUnavailable("lost between the two transactions")
        yield

    def half() -> None:
        with monkeypatch.context() as patched, pytest.raises(StoreUnavailable):
            patched.setattr(planner.engine.store, "upkeep", lose)
            planner.delete_scope("s")

    while_writing(planner, half).ingest_text("s", "doc.md", CHANGED)
    check_invariants(database_url, "s")
    check_vectors(database_url, "s")
    assert current(database_url) == ["The first at 5.", "The third at 25."]
    half()
    check_invariants(database_url, "s")
    planner.delete_scope("s")
    survived("half of the deletion is lost", "scope delete", sum(rows_left(database_url, "s").values()))


def test_a_scope_that_two_delete_at_once_is_deleted_once(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    with ThreadPoolExecutor(1) as thread, session(database_url) as conn:
        with held(database_url, "s", "node", "DELETE", lambda: planner.delete_scope("s")) as first:
            second = thread.submit(planner.delete_scope, "s")
            await_waiting(conn, 1, [second], lock="transactionid")
        outcomes = [call.exception() or call.result() for call in (first, second)]
    assert {type(o).__name__ for o in outcomes} <= {"UnknownScope", "DeletedScope"}
    survived("two at once", "scope delete", sum(rows_left(database_url, "s").values()))


def test_processes_that_live_in_a_scope_that_others_delete_and_prune(
    crew: Crew, planner: Planner, database_url: str, survived: Survived
) -> None:
    lives = [(inhabit, "s", f"p{i}", 4) for i in range(6)]
    done = crew.run(database_url, [*lives, (delete, "s", 3), (delete, "s", 3), *[(prune_trace, None, 5)] * 2])
    went = sum((counts for counts in done[:8]), Counter())
    assert {said for said in went if not said.endswith(": done")} <= {
        *(f"{said}: not_found.scope: no scope 's'" for said in ("plan", "delete")),
        "plan: not_found.scope: scope 's' is not there any more: it was deleted meanwhile",
    }
    check_invariants(database_url, "s")
    check_vectors(database_url, "s")
    planner.ingest_text("s", "doc.md", DOCUMENT)
    planner.delete_scope("s")
    assert deadlocks(database_url) == 0
    missing = sum(rows_left(database_url, "s").values())
    survived("ten processes at once", "scope delete, ingest, append, plan, trace prune", missing)
