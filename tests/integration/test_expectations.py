"""Expectations: an answered "why not" is kept, and asked again of every later state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from planner import Planner, Settings
from planner.errors import InsufficientEvidence, NotFound, RequestError, UnknownPlan, UnknownScope
from planner.trace.expectation import Expected
from tests.integration.graph import Connection, ask, fan, fresh_scope, rows_of

DOC = "doc.md"


def write(planner: Planner, scope: str, *angles: int) -> None:
    planner.ingest_text(scope, DOC, "\n\n".join(f"Paragraph at {angle}." for angle in angles))


def only(planner: Planner, scope: str) -> Expected:
    (found,) = planner.check_expectations(scope)
    return found


def test_what_fell_is_expected_and_holds_when_the_budget_of_the_day_lets_it(
    planner: Planner, conn: Connection, scope: str
) -> None:
    fan(0, 10, 20).into(planner, scope)
    plan = ask(planner, scope, text="at 0", budget_tokens=10)
    (rejected, *_) = plan.rejected
    ref = str(rejected.verdict.candidate.ref)
    kept = planner.expect(plan.ref, ref, note="they asked in May")
    assert (kept.what, kept.stage, kept.note, kept.plan) == (
        ref,
        "over_budget",
        "they asked in May",
        plan.ref,
    )
    assert (kept.actor, kept.request["text"], kept.request["budget_tokens"]) == ("library", "at 0", 10)
    assert planner.expectations(scope) == (kept,)
    found = only(planner, scope)
    assert (found.held, found.stage, found.expectation) == (False, "over_budget", kept)
    assert found.sentence == planner.why(plan.ref, ref).sentence
    assert found.plan is not None
    assert planner.load(found.plan).plan_hash == plan.plan_hash
    planner.remove_expectation(str(kept.ref))
    assert planner.expectations(scope) == ()
    assert rows_of(conn, scope)["expectation"] == 0


def test_only_what_the_caller_asked_is_kept_not_what_the_settings_filled_in(
    planner: Planner, scope: str
) -> None:
    fan(0, 10).into(planner, scope)
    plain = planner.expect(ask(planner, scope, text="at 0").ref, "n1.txt")
    assert plain.request.keys() == {"scope", "text", "budget_tokens", "counter", "allow_ungrounded"}
    narrow = ask(
        planner, scope, text="at 0", k=3, as_of=1, must={"field": "kind", "op": "eq", "value": "fact"}
    )
    kept = planner.expect(narrow.ref, "n1.txt")
    assert {name: kept.request[name] for name in kept.request.keys() - plain.request.keys()} == {
        "k": 3,
        "must": {"field": "kind", "op": "eq", "value": "fact"},
    }


def test_it_is_asked_of_the_newest_state_under_the_settings_of_the_day(planner: Planner, scope: str) -> None:
    write(planner, scope, 0, 80)
    plan = ask(planner, scope, text="at 0", budget_tokens=20)
    planner.expect(plan.ref, "Paragraph at 80")
    assert only(planner, scope).held
    write(planner, scope, 0, 10, 20, 30, 40, 50, 60, 80)  # others are nearer now
    found = only(planner, scope)
    assert (found.held, found.stage) == (False, "over_budget")
    nearest = planner.engine.settings.model_copy(update={"k": 1, "hops": 0, "trace": "off"})
    narrow = Planner(replace(planner.engine, settings=nearest))
    found = only(narrow, scope)
    assert (found.held, found.stage) == (False, "below_top_k")
    assert found.plan is not None
    assert narrow.load(found.plan).as_of == 2  # kept although `trace` is off
    write(planner, scope, 0)
    assert only(planner, scope).stage == "not_current"


def test_a_duplicate_of_what_is_selected_is_in_the_plan(planner: Planner, scope: str) -> None:
    text = "One paragraph that is all there is."
    graph = fan().source(DOC, text, [(0, len(text)), (0, len(text) - 1)])
    graph.node("whole", 0, spans=[(DOC, 0, len(text))]).node("part", 30, spans=[(DOC, 0, len(text) - 1)])
    graph.into(planner, scope)
    plan = ask(planner, scope, text="at 0")
    part = f"{DOC}@1:0-{len(text) - 1}"
    assert planner.why(plan.ref, part).answers[0].stage == "duplicate"
    planner.expect(plan.ref, part)
    found = only(planner, scope)
    assert (found.held, found.stage) == (True, "duplicate")


def test_a_phrase_that_one_selected_span_holds_is_there(planner: Planner, scope: str) -> None:
    fan(0, 10, 20, 30).into(planner, scope)
    plan = ask(planner, scope, text="at 0", budget_tokens=10)
    assert planner.why(plan.ref, "Fact number").stages.keys() > {"selected"}
    planner.expect(plan.ref, "Fact number")
    assert only(planner, scope).held


def test_a_plan_that_was_refused_can_be_asked_about_and_a_refusal_is_told(
    planner: Planner, scope: str
) -> None:
    fan(0).into(planner, scope)
    plan = ask(planner, scope, text="at 0", budget_tokens=1)
    kept = planner.expect(plan.ref, "n0.txt")
    assert "allow_ungrounded" in kept.request
    with pytest.raises(InsufficientEvidence, match="nothing fits") as refused:
        planner.plan(scope, "at 0", budget_tokens=1)
    planner.expect(str(refused.value.plan), "n0.txt")
    found = list(planner.check_expectations(scope))
    assert [(one.held, one.stage) for one in found] == [(False, "unpackable")] * 2
    assert all(one.plan is not None for one in found)


def test_a_request_above_todays_limits_is_a_fall_not_an_error(planner: Planner, scope: str) -> None:
    fan(0, 10).into(planner, scope)
    planner.expect(ask(planner, scope, text="at 0", k=9).ref, "n0.txt")
    lower = planner.engine.settings.model_copy(update={"k": 5})
    found = only(Planner(replace(planner.engine, settings=lower)), scope)
    assert (found.held, found.stage, found.plan) == (False, "refused", None)
    assert "k = 9 is above the operator's limit 5" in found.sentence


def test_the_same_expectation_is_there_once_and_keeps_its_first_note(planner: Planner, scope: str) -> None:
    fan(0, 10).into(planner, scope)
    first = planner.expect(ask(planner, scope, text="at 0").ref, "n1.txt", note="one")
    again = planner.expect(ask(planner, scope, text="at 0").ref, "n1.txt", note="two")
    assert again == first
    assert len(planner.expectations(scope)) == 1
    other = planner.expect(ask(planner, scope, text="at 0", budget_tokens=77).ref, "n1.txt")
    assert other.ref != first.ref
    assert planner.expectations(scope) == (first, other)


def test_what_cannot_be_expected_is_refused(planner: Planner, scope: str) -> None:
    fan(0).into(planner, scope)
    plan = ask(planner, scope, text="at 0")
    with pytest.raises(RequestError, match="'nobody' cannot be expected"):
        planner.expect(plan.ref, "nobody")
    with pytest.raises(RequestError, match="NUL"):
        planner.expect(plan.ref, "n0.txt", note="a\0b")
    with pytest.raises(UnknownPlan):
        planner.expect(f"{scope}:{uuid4()}", "n0.txt")
    with pytest.raises(UnknownScope):
        planner.expectations(fresh_scope())
    with pytest.raises(UnknownScope):
        list(planner.check_expectations(fresh_scope()))
    for ref, error in (
        ("nonsense", RequestError),
        (f"{scope}:0123", RequestError),
        (f"{scope}:{'0' * 16}", NotFound),
    ):
        with pytest.raises(error):
            planner.remove_expectation(ref)


def test_the_scores_of_a_caller_cannot_be_expected(planner: Planner, scope: str) -> None:
    class Reverse:
        name = "reverse"

        def score(self, question: str, candidates: list[object], texts: list[str]) -> list[float]:
            return [float(i) for i, _ in enumerate(candidates)]

    fan(0, 10).into(planner, scope)
    plan = planner.plan(scope, "at 0", rescore=Reverse())  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="caller:reverse"):
        planner.expect(plan.ref, "n0.txt")


def test_expectations_of_another_scope_are_not_seen_and_end_with_their_own(
    planner: Planner, conn: Connection
) -> None:
    mine, theirs = fresh_scope("mine"), fresh_scope("theirs")
    refs = []
    for scope in (mine, theirs):
        fan(0).into(planner, scope)
        refs.append(planner.expect(ask(planner, scope, text="at 0").ref, "n0.txt").ref)
    assert refs[0].expectation_id != refs[1].expectation_id
    with pytest.raises(NotFound):
        planner.remove_expectation(f"{mine}:{refs[1].expectation_id}")
    checked = {one.expectation.ref.scope for one in planner.check_expectations()}
    assert checked >= {mine, theirs}
    planner.delete_scope(theirs)
    assert rows_of(conn, theirs)["expectation"] == 0
    assert len(planner.expectations(mine)) == 1


def test_an_erased_source_leaves_the_callers_words_and_the_check_says_why_it_fell(
    planner: Planner, scope: str
) -> None:
    fan(0, 10).into(planner, scope)
    plan = ask(planner, scope, text="at 0")
    planner.expect(plan.ref, "n1.txt@1:0-14")
    planner.erase(scope, "n1.txt")
    (kept,) = planner.expectations(scope)
    assert kept.what == "n1.txt@1:0-14"
    found = only(planner, scope)
    assert (found.held, found.stage) == (False, "not_current")
    assert "erased" in found.sentence


def test_expectations_are_listed_in_the_order_in_which_they_were_made(
    database_url: str,
) -> None:
    days = iter(range(3, 30))
    with Planner.connect(
        database_url,
        settings=Settings(max_frac_per_source=1.0),
        clock=lambda: datetime(2026, 1, next(days), tzinfo=UTC),
        actor="me",
    ) as planner:
        planner.ingest_text("s", DOC, "One.\n\nTwo.\n\nThree.")
        plan = planner.plan("s", "two")
        for phrase in ("Two.", "One.", "Three."):
            planner.expect(plan.ref, phrase)
        found = planner.expectations("s")
    assert [one.what for one in found] == ["Two.", "One.", "Three."]
    assert sorted(found, key=lambda one: one.created_at) == list(found)
    assert {one.actor for one in found} == {"me"}
