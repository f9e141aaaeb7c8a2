"""A call without a database: its deadline, its end, and whom it reaches."""

from __future__ import annotations

import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import CallCancelled, DeadlineExceeded, RequestError
from planner.store.call import LONGEST_MS, Call, calling, current, farewell, pause, sending


@pytest.mark.parametrize("allowed", [0, -1, LONGEST_MS + 1])
def test_a_deadline_is_a_time_to_come(allowed: int) -> None:
    with pytest.raises(RequestError) as caught:
        Call(allowed)
    assert caught.value.detail["field"] == "deadline_ms"


@given(st.integers(1, LONGEST_MS), st.integers(0, LONGEST_MS))
def test_what_is_left_of_a_limit_is_never_more_than_either_and_never_none(allowed: int, limit: int) -> None:
    left = Call(allowed).within(limit)
    assert 1 <= left <= min(allowed, limit or allowed)
    assert Call().within(limit) == limit


def test_a_call_ends_by_its_deadline_or_by_its_caller_and_says_which() -> None:
    late, unwanted = Call(1), Call(60_000)
    assert unwanted.ended() is None
    late.pause(60.0)
    with pytest.raises(DeadlineExceeded, match="1 ms"):
        late.check()
    assert late.left == 0
    unwanted.cancel()
    unwanted.cancel()
    unwanted.pause(60.0)
    with pytest.raises(CallCancelled):
        unwanted.check()


def test_a_call_reaches_what_runs_inside_and_what_is_given_its_context_and_nobody_else() -> None:
    with ThreadPoolExecutor(1) as elsewhere, calling(Call()) as outer:
        with calling(Call()) as inner:
            assert current() is inner
        assert current() is outer
        assert elsewhere.submit(current).result() is None
        assert elsewhere.submit(contextvars.copy_context().run, current).result() is outer
    assert current() is None


def test_a_failure_is_recorded_in_a_time_of_its_own_once_the_call_has_ended() -> None:
    with calling(Call(60_000)) as call:
        with farewell():
            assert current() is call
        call.cancel()
        with farewell():
            last = current()
            assert last is not None
            assert last.ended() is None
            assert last.deadline_ms is not None
        assert current() is call


def test_without_a_call_nothing_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    pause(3.0)
    assert slept == [3.0]
    with farewell():
        assert current() is None
    with sending(None):  # type: ignore[arg-type]
        assert current() is None
