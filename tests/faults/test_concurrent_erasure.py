"""Erasure against whatever else is going on: what was erased is gone, and what came later is whole."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from planner import Planner
from planner.errors import UnknownSpan
from tests.faults.conftest import Survived
from tests.faults.crew import WORDS, Crew, await_waiting, connect, deadlocks, held, lost, while_writing
from tests.faults.invariants import check_invariants, check_vectors, rows_left, session
from tests.faults.work import SHARED, TALK, churn, erase

TEXT = "A secret at 5.\n\nAnother at 15."
TURNS = [{"content": f"Turn {i}, at {i}.", "id": f"m{i}", "speaker": "ann"} for i in range(3)]


@pytest.fixture
def planner(database_url: str) -> Iterator[Planner]:
    """Give a planner on a database of its own, whose scope `s` holds a source and a conversation."""
    with connect(database_url, pool_size=4) as planner:
        planner.ingest_text("s", SHARED, TEXT, title="Secrets")
        planner.append("s", TALK, TURNS[:2])
        yield planner


def bodies(url: str) -> dict[tuple[str, int], str | None]:
    """Return the text of every version, None where it is erased."""
    with session(url) as conn:
        found = conn.execute(
            "SELECT source_id, version_tx, convert_from(body, 'UTF8') FROM planner.source_version"
        )
        return {(source_id, tx): body for source_id, tx, body in found}


def test_a_source_that_is_erased_while_it_is_ingested_anew_has_the_new_version_alone(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    anew = "A secret at 5.\n\nOnly this is new, at 25."
    expected = {**bodies(database_url), (SHARED, 1): None, (SHARED, 4): anew}
    done = while_writing(planner, lambda: planner.erase("s", SHARED)).ingest_text("s", SHARED, anew)
    assert (done.sources[0].version_tx, done.counts["nodes"]) == (4, 3)
    assert planner.plan("s", "at 25", k=1, hops=0).spans[0].text == "Only this is new, at 25."
    check_invariants(database_url, "s")
    check_vectors(database_url, "s")
    survived("erased meanwhile", "ingest", lost(expected.items(), bodies(database_url).items()))


def test_a_conversation_that_is_erased_while_a_turn_is_appended_begins_with_that_turn(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    expected = {**bodies(database_url), (TALK, 2): None, (TALK, 4): "Turn 2, at 2."}
    while_writing(planner, lambda: planner.erase("s", TALK)).append("s", TALK, TURNS[2:])
    check_invariants(database_url, "s")
    check_vectors(database_url, "s")
    survived("erased meanwhile", "append", lost(expected.items(), bodies(database_url).items()))


def test_nothing_is_made_from_what_is_erased_meanwhile(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    expected = {**bodies(database_url), (SHARED, 1): None}
    writer = while_writing(planner, lambda: planner.erase("s", SHARED))
    with pytest.raises(UnknownSpan, match="is erased"):
        writer.derive("s", "A summary of the secret, at 35.", [f"{SHARED}@1:0-14"])
    check_invariants(database_url, "s")
    survived("erased meanwhile", "derive", lost(expected.items(), bodies(database_url).items()))


def test_a_cache_that_is_made_while_its_source_is_erased_is_erased_with_it(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    def derive() -> None:
        origin = [f"{SHARED}@1:0-14"]
        planner.derive("s", "A summary of the secret, at 35.", origin, source_id="summary.md")

    expected = {**bodies(database_url), (SHARED, 1): None, ("summary.md", 3): None}
    erased = while_writing(planner, derive).erase("s", SHARED)
    assert (erased.sources, erased.versions) == ((SHARED, "summary.md"), 2)
    check_invariants(database_url, "s")
    survived("derived meanwhile", "erase", lost(expected.items(), bodies(database_url).items()))


def test_a_plan_that_read_a_source_before_it_was_erased_leaves_no_text_and_no_count(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    class Late:
        name = "late"

        def score(self, question: str, candidates: Any, texts: Any) -> list[float]:
            planner.erase("s", SHARED)
            return [1.0] * len(candidates)

    plan = planner.plan("s", "at 5", counter=WORDS, rescore=Late())
    assert "A secret at 5." in [span.text for span in plan.spans]
    assert {
        span.text for span in planner.load(plan.ref).spans if span.verdict.candidate.source_id == SHARED
    } == {None}
    assert planner.verify_plan(plan.ref).ok
    check_invariants(database_url, "s")
    left = rows_left(database_url, "s")  # the counts are the turns'
    survived("erased meanwhile", "plan", lost([4, 2], [left["plan_candidate"], left["token_count"]]))


def test_a_plan_that_is_traced_before_an_erasure_commits_leaves_no_count(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    with held(database_url, "s", "ledger", "INSERT", lambda: planner.erase("s", SHARED)):
        planner.plan("s", "at 5", counter=WORDS)
    check_invariants(database_url, "s")
    left = rows_left(database_url, "s")
    survived(
        "a plan is traced meanwhile", "erase", lost([4, 2], [left["plan_candidate"], left["token_count"]])
    )


def test_a_source_that_two_erase_at_once_is_erased_by_one(
    planner: Planner, database_url: str, survived: Survived
) -> None:
    with ThreadPoolExecutor(1) as thread, session(database_url) as conn:
        with held(database_url, "s", "ledger", "INSERT", lambda: planner.erase("s", SHARED)) as first:
            second = thread.submit(planner.erase, "s", SHARED)
            await_waiting(conn, 1, [second], lock="transactionid")
        assert (first.result().tx, second.result().tx) == (3, None)
    check_invariants(database_url, "s")
    survived("erased meanwhile", "erase", rows_left(database_url, "s")["ledger"] - 3)


def test_processes_that_erase_what_others_ingest_append_and_plan(
    crew: Crew, planner: Planner, database_url: str, survived: Survived
) -> None:
    names, rounds = [f"p{i}" for i in range(7)], 3
    done = crew.run(
        database_url,
        [*((churn, "s", name, rounds) for name in names), *[(erase, "s", [SHARED, TALK], rounds)] * 3],
    )
    wrote, erased = [v for mine in done[:7] for v in mine.versions], [tx for mine in done[7:] for tx in mine]
    missing = lost([(SHARED, 1), (TALK, 2), *wrote], list(bodies(database_url)))
    missing += lost(range(1, 3 + len(wrote) + len(erased)), [1, 2, *(tx for _, tx in wrote), *erased])
    check_invariants(database_url, "s")
    check_vectors(database_url, "s")
    for source in (SHARED, TALK):
        planner.erase("s", source)
    assert set(bodies(database_url).values()) == {None}
    check_invariants(database_url, "s")
    left = rows_left(database_url, "s")
    assert (left.get("embedding", 0), left.get("token_count", 0)) == (0, 0)
    assert deadlocks(database_url) == 0
    survived("ten processes at once", "erase, ingest, append, plan: the same sources", missing)
