"""What changed from one plan to another, and what would have: the same as when it is really planned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from planner import EvidencePlan, InsufficientEvidence, Planner, Settings
from planner.errors import RequestError, SettingsError, UnknownPlan, UnknownScope
from planner.pipeline import whatif as streaming
from planner.trace.diff import Change, Diff
from planner.types import PlanRef
from tests.integration.graph import Connection, Graph, ask, at, circle_embedder, fan, fresh_scope
from tests.integration.tampering import other, refs, tampering


@pytest.fixture(scope="module")
def varied(planner: Planner) -> str:
    """Give a scope in which each setting of selection decides something."""
    name = fresh_scope("varied")
    graph = Graph().source("s", "one two six ten and eleven", [(0, 11), (2, 13), (14, 26)])
    graph.node("whole", 0, spans=[("s", 0, 11), ("s", 2, 13), ("s", 14, 26)])
    graph.source("titles", "A heading that is long", [(0, 22)], kind="heading")
    graph.node("titled", 10, spans=[("titles", 0, 22)])
    graph.node("cached", 12, text="A summary of it all", source={"class": "cache"})
    graph.node("long", 14, text="A text that is somewhat longer than the others are.")
    graph.node("b", 20, text="Some words").node("c", 30, text="Some other").into(planner, name)
    return name


CHANGES: dict[str, dict[str, Any]] = {
    "kind priors": {"kind_priors": {"heading": 0.05, "paragraph": 0.4}},
    "cache discount": {"cache_discount": 0.9},
    "dedup": {"dedup_overlap": 0.95},
    "cap": {"max_frac_per_source": 0.2},
    "plan model": {"plan_model": "v2"},
    "less budget": {"budget": 40},
    "more budget": {"budget": 500},
    "none fits": {"budget": 3},
    "all of it": {"budget": 50, "max_frac_per_source": 0.6, "plan_model": "v2", "cache_discount": 0.2},
}


def asked(planner: Planner, scope: str, **fields: Any) -> EvidencePlan:
    return ask(planner, scope, **{"counter": "utf8-bytes-v1", "budget_tokens": 90, **fields})


def really(planner: Planner, scope: str, changes: dict[str, Any]) -> EvidencePlan:
    """Plan with these settings."""
    settings = {k: v for k, v in changes.items() if k != "budget"}
    fields = {"budget_tokens": changes["budget"]} if "budget" in changes else {}
    return asked(other(planner, **settings), scope, **fields)


@pytest.mark.parametrize("how", CHANGES)
def test_whatif_is_what_planning_with_these_settings_gives(planner: Planner, varied: str, how: str) -> None:
    plan, made = asked(planner, varied), really(planner, varied, CHANGES[how])
    assert plan.plan_hash != made.plan_hash
    found = planner.whatif(CHANGES[how], plans=[plan.ref])
    (changed,) = found.changed
    assert changed.plan_hash == (plan.plan_hash, made.plan_hash)
    assert changed.used == (plan.used, made.used)
    assert {str(ref) for ref in changed.gained} == set(refs(made)) - set(refs(plan))
    assert {str(ref) for ref in changed.lost} == set(refs(plan)) - set(refs(made))
    assert found.tokens_saved == plan.used - made.used
    assert found.emptied == (made.used == 0)


def test_whatif_keeps_each_plans_own_configuration_but_for_what_is_set(planner: Planner, varied: str) -> None:
    discounting = other(planner, cache_discount=0.9, kind_priors={"heading": 1.0})
    plan = asked(discounting, varied)
    made = asked(other(planner, cache_discount=0.9, kind_priors={"heading": 1.0, "paragraph": 0.3}), varied)
    found = planner.whatif({"kind_priors": {"paragraph": 0.3}}, plans=[str(plan.ref)])
    (changed,) = found.changed
    assert changed.plan_hash[1] == made.plan_hash
    nothing = planner.whatif({"cache_discount": 0.9}, plans=[plan.ref])
    assert (nothing.plans, nothing.changed, nothing.tokens_saved) == (1, [], 0)


def test_whatif_over_a_scope_is_the_sum_of_its_plans_page_by_page(
    planner: Planner, conn: Connection, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fan(*range(0, 60, 10)).into(planner, scope)
    plans = [ask(planner, scope, budget_tokens=budget) for budget in (10, 20, 30, 40, 50)]
    with pytest.raises(InsufficientEvidence):
        planner.plan(scope, embedding=at(0), budget_tokens=1)  # refused: it has a pool too
    monkeypatch.setattr(streaming, "PAGE", 2)
    found = planner.whatif({"budget": 20}, scopes=[scope])
    each = [planner.whatif({"budget": 20}, plans=[plan.ref]) for plan in plans]
    assert (found.plans, len(found.changed)) == (6, 5)
    assert found.used == sum(plan.used for plan in plans)
    assert found.would_use == 6 * plans[1].used
    assert found.lost == sum(one.lost for one in each) > 0
    assert found.to_dict()["tokens_saved"] == sum(one.tokens_saved for one in each) - plans[1].used
    tampering(conn, scope)(
        "UPDATE planner.plan SET outcome = 'failed', error_code = 'x', plan_hash = NULL, pool_hash = NULL"
        " WHERE outcome = 'refused' AND scope_id = %s"
    )
    assert planner.whatif({"budget": 20}, scopes=[scope]).plans == 5


def test_since_bounds_the_plans_by_when_they_were_made(planner: Planner, scope: str) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    ages = [timedelta(days=8), timedelta(days=7, milliseconds=1), timedelta(days=7), timedelta(0)]
    time = [now]
    timed = Planner.from_pool(
        planner.engine.store.pool,
        settings=Settings(max_frac_per_source=1.0),
        embedder=circle_embedder(),
        clock=lambda: time[0],
    )
    fan(0).into(timed, scope)
    for age in ages:
        time[0] = now - age
        ask(timed, scope)
    assert timed.whatif({"budget": 9}, scopes=[scope], since=timedelta(days=7)).plans == 2
    assert timed.whatif({"budget": 9}, scopes=[scope]).plans == 4


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({}, RequestError, "change something"),
        ({"alpha": 0.5}, RequestError, "'alpha' cannot be changed for a pool that is there"),
        ({"budget": 0}, RequestError, "budget = 0"),
        ({"budget": "many"}, RequestError, "budget = 'many'"),
        ({"dedup_overlap": 0.2}, SettingsError, r"dedup_overlap = 0\.2"),
        ({"kind_priors": {"heading": 2.0}}, SettingsError, r"kind_priors\.heading"),
    ],
)
def test_what_cannot_be_changed_is_refused(
    planner: Planner, varied: str, changes: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        planner.whatif(changes, scopes=[varied])


def test_whatif_needs_plans_or_scopes_that_are_there(planner: Planner, varied: str) -> None:
    plan = asked(planner, varied)
    with pytest.raises(RequestError, match="not both, not neither"):
        planner.whatif({"budget": 9})
    with pytest.raises(RequestError, match="not both, not neither"):
        planner.whatif({"budget": 9}, plans=[plan.ref], scopes=[varied])
    with pytest.raises(UnknownScope):
        planner.whatif({"budget": 9}, scopes=["nowhere"])
    with pytest.raises(UnknownPlan):
        planner.whatif({"budget": 9}, plans=[PlanRef("nowhere", plan.plan_id)])


def why(found: Diff) -> dict[str, tuple[Change, tuple[str, ...]]]:
    return {str(c.ref): (c.change, c.reasons) for c in found.changes}


@pytest.mark.parametrize("how", CHANGES)
def test_a_diff_turns_the_first_selection_into_the_second(planner: Planner, varied: str, how: str) -> None:
    a, b = asked(planner, varied), really(planner, varied, CHANGES[how])
    found = planner.diff(a.ref, b.ref)
    places = dict(enumerate(refs(a)))
    for change in found.changes:
        before, after = change.place
        assert (before is None or places.pop(before) == str(change.ref)) and before != after
        assert change.reasons
    places.update({c.place[1]: str(c.ref) for c in found.changes if c.place[1] is not None})
    assert [places[i] for i in sorted(places)] == refs(b)
    assert (found.same_plan, found.same_pool) == (False, False)


def test_a_diff_names_the_limits_and_figures_that_decided(planner: Planner, varied: str) -> None:
    plan = asked(planner, varied)
    small = planner.diff(plan.ref, asked(planner, varied, budget_tokens=40).ref)
    assert set(why(small).values()) >= {(Change.LEFT, ("over_budget", "budget"))}
    assert small.request["budget_tokens"] == (90, 40)
    assert small.figures["budget"] == (90, 40)
    capped = planner.diff(plan.ref, really(planner, varied, CHANGES["cap"]).ref)
    assert why(capped)["s@1:14-26"] == (Change.LEFT, ("over_source_cap", "cap"))
    assert capped.config == {"max_frac_per_source": (1.0, 0.2)}
    apart = planner.diff(plan.ref, really(planner, varied, CHANGES["dedup"]).ref)
    assert why(apart)["s@1:2-13"] == (Change.ENTERED, ("duplicate", "dedup_overlap"))
    longer = planner.diff(plan.ref, asked(planner, varied, max_spans=3).ref)
    assert why(longer)["b.txt@1:0-10"] == (Change.LEFT, ("cut_max_spans",))
    nearest = planner.diff(plan.ref, asked(planner, varied, k=1, hops=0).ref)
    assert why(nearest)["b.txt@1:0-10"] == (Change.LEFT, ("absent_from_pool",))


def test_a_diff_of_other_scores_or_counts_says_so(planner: Planner, varied: str) -> None:
    plan = asked(planner, varied, budget_tokens=60)
    turned = planner.diff(plan.ref, asked(planner, varied, embedding=at(40), budget_tokens=60).ref)
    assert {reasons[-1] for _, reasons in why(turned).values()} == {"score"}
    counted = planner.diff(plan.ref, asked(planner, varied, counter="utf8-script-v1", budget_tokens=60).ref)
    assert all("tokens" in reasons for _, reasons in why(counted).values())
    assert counted.figures["counter"] == ("utf8-bytes-v1", "utf8-script-v1")


def test_a_plan_does_not_differ_from_its_like(planner: Planner, varied: str) -> None:
    a, b = asked(planner, varied), asked(planner, varied)
    found = planner.diff(str(a.ref), str(b.ref))
    assert (found.same_plan, found.same_pool, found.changes) == (True, True, ())
    assert (found.figures, found.request, found.config) == ({}, {}, {})


def test_a_diff_is_within_one_scope_and_of_plans_that_have_a_pool(
    planner: Planner, conn: Connection, varied: str, scope: str
) -> None:
    plan = asked(planner, varied)
    fan(0).into(planner, scope)
    foreign = ask(planner, scope)
    with pytest.raises(RequestError, match="different scopes"):
        planner.diff(plan.ref, foreign.ref)
    with pytest.raises(UnknownPlan):
        planner.diff(plan.ref, PlanRef(varied, foreign.plan_id))
    failed = ask(planner, scope)
    tampering(conn, scope)(
        "UPDATE planner.plan SET outcome = 'failed', error_code = 'x', plan_hash = NULL, pool_hash = NULL"
        " WHERE plan_id = %s AND scope_id = %s",
        failed.plan_id,
    )
    with pytest.raises(RequestError, match="nothing to compare"):
        planner.diff(foreign.ref, failed.ref)
