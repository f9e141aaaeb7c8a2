"""A write that was committed, and the answer lost: done again it finds itself done, or it is not repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from planner import Planner, Settings
from planner.engine import Stopwatch
from planner.errors import StoreError, StoreUnavailable
from planner.ingest import scope_id
from planner.pipeline.draft import Draft
from planner.pipeline.plan import asked, persist
from planner.request import PlanRequest
from planner.store import retry
from tests.integration.graph import Connection, circle_embedder, rows_of
from tests.integration.repeated import WRITES, append, fill
from tests.integration.test_ingest_writers import assert_chained
from tests.relay import Relay, relay


@pytest.fixture
def lossy(database_url: str) -> Iterator[tuple[Relay, Planner]]:
    """Give a planner whose connections pass through a relay, and two filled scopes, `one` and its `twin`."""
    with (
        relay(database_url) as (between, url),
        Planner.connect(url, settings=Settings(), embedder=circle_embedder()) as planner,
    ):
        for scope in ("one", "twin"):
            fill(planner, scope)
        yield between, planner


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return a function that gives what was logged of the attempts that failed."""
    caplog.set_level("INFO", retry.__name__)
    return lambda: [record.getMessage() for record in caplog.records if record.name == retry.__name__]


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_was_made_and_is_made_again_is_made_once(
    lossy: tuple[Relay, Planner], other: Connection, said: Callable[[], list[str]], name: str
) -> None:
    between, planner = lossy
    write = WRITES[name]
    write.work(planner, "twin")
    between.lose(write.says)
    assert write.work(planner, "one") is not None
    assert ["whether the transaction was committed is not known" in message for message in said()] == [True]
    assert rows_of(other, "one") == rows_of(other, "twin")
    assert_chained(other, "one")


def test_a_plan_whose_trace_was_written_is_given_and_can_be_read(lossy: tuple[Relay, Planner]) -> None:
    between, planner = lossy
    between.lose(WRITES["plan"].says)
    made = planner.plan("one", "at 0")
    assert planner.load(made.ref).plan_hash == made.plan_hash
    assert planner.verify_plan(made.ref).faults == ()


def test_a_trace_that_is_there_with_other_hashes_is_no_success(
    lossy: tuple[Relay, Planner], other: Connection
) -> None:
    _, planner = lossy
    engine = planner.engine
    draft = Draft(engine, *asked(engine, PlanRequest(scope="one", text="at 0")), None, Stopwatch())
    with engine.store.scoped(scope_id("one"), "reader", snapshot=True) as conn:
        draft.look(conn)
        draft.recall(conn)
        draft.decide(conn)
    record = draft.record()
    persist(engine, draft, record)
    before = rows_of(other, "one")
    persist(engine, draft, record)
    with pytest.raises(StoreError, match="duplicate key"):
        persist(engine, draft, replace(record, plan_hash="00" * 32))
    assert rows_of(other, "one") == before


def test_a_turn_without_an_id_is_not_appended_again_and_the_error_says_why(
    lossy: tuple[Relay, Planner], said: Callable[[], list[str]]
) -> None:
    between, planner = lossy
    between.lose(WRITES["append"].says)
    with pytest.raises(
        StoreUnavailable, match="whether the transaction was committed is not known"
    ) as caught:
        append(planner, "one")
    assert caught.value.detail["outcome"] == "unknown"
    assert said() == []
    assert len(planner.source("one", "talk.json").spans) == 1


def test_a_token_whose_answer_was_lost_is_there_once_and_works(lossy: tuple[Relay, Planner]) -> None:
    between, planner = lossy
    between.lose(b"INSERT INTO planner.api_token")
    made = planner.create_token("one", label="a", permissions=["read"])
    assert planner.tokens("one") == (made.token,)
    assert planner.authenticate(made.text).scope == "one"
