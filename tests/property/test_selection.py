"""The properties of selection.md."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.hashing import STATS, plan_bytes, pool_bytes
from planner.selection.budget import resolve_budget
from planner.selection.select import insufficient, select
from planner.tokens import ByteCounter, ScriptCounter, counter
from planner.types import NO_TEXT_HASH, Budget, Candidate, Outcome, SelectionPolicy
from tests.property import reference
from tests.strategies import budgets, policies, pools, texts

MODELS = {"plan_model": "v1", "score_model": "external"}


@given(pools(), policies, budgets())
@settings(max_examples=300)
def test_selection_equals_the_page_followed_to_the_letter(
    pool: list[Candidate], policy: SelectionPolicy, budget: Budget
) -> None:
    selection = select(pool, policy, budget)
    fates, selected = reference.select(pool, policy, budget)
    assert {v.candidate.ref: (v.outcome.value, v.duplicate_of) for v in selection.verdicts} == fates
    assert [v.candidate.ref for v in selection.selected] == selected
    ranked = [v for v in selection.verdicts if v.candidate.sliceable]
    assert [v.candidate.ref for v in ranked] == [c.ref for c in reference.ranked(pool, policy)]
    assert [v.weight for v in selection.verdicts] == [
        reference.weight(v.candidate, policy) for v in selection.verdicts
    ]


@given(pools(), policies, budgets())
def test_budget_and_every_cap_hold(pool: list[Candidate], policy: SelectionPolicy, budget: Budget) -> None:
    selection = select(pool, policy, budget)
    by_source: Counter[str] = Counter()
    for verdict in selection.selected:
        by_source[verdict.candidate.source_id] += verdict.candidate.tokens
    assert selection.used == by_source.total() <= budget.budget <= budget.requested
    assert all(tokens <= budget.cap for tokens in by_source.values())


@given(
    st.lists(texts.filter(bool), min_size=1, max_size=12),
    st.sampled_from(("utf8-script-v1", "utf8-bytes-v1", "openai:o200k_base", "openai:cl100k_base")),
    st.integers(1, 200),
    policies,
)
def test_budget_holds_for_real_text_in_every_script(
    bodies: list[str], name: str, requested: int, policy: SelectionPolicy
) -> None:
    chosen = counter(name, {})
    pool = [
        Candidate(f"s{i}", 1, 0, len(body.encode()), "paragraph", "truth", 0.5, chosen.count(body))
        for i, body in enumerate(bodies)
    ]
    budget = resolve_budget(requested, counter=name, bound=chosen.bound, max_frac=0.7)
    selection = select(pool, policy, budget)
    counted = [chosen.count(bodies[int(v.candidate.source_id[1:])]) for v in selection.selected]
    assert sum(counted) == selection.used <= budget.budget
    assert budget.budget == (requested * 9 // 10 if chosen.bound == "estimate" else requested)


@given(pools(), policies, budgets())
def test_each_candidate_has_one_outcome_and_the_counts_add_up(
    pool: list[Candidate], policy: SelectionPolicy, budget: Budget
) -> None:
    selection = select(pool, policy, budget, kind_missing=3, merged=4)
    assert Counter(v.candidate.ref for v in selection.verdicts) == Counter(c.ref for c in pool)
    assert {o.value: selection.stats[o.value] for o in Outcome} == {
        o.value: sum(v.outcome is o for v in selection.verdicts) for o in Outcome
    }
    assert sum(selection.stats[o.value] for o in Outcome) == selection.stats["candidates"] == len(pool)
    assert tuple(selection.stats) == STATS
    assert (selection.stats["kind_missing"], selection.stats["merged"]) == (3, 4)
    assert [v.order for v in selection.selected] == list(range(len(selection.selected)))


@given(pools(), policies, budgets(), st.randoms())
def test_input_order_never_changes_a_byte(
    pool: list[Candidate], policy: SelectionPolicy, budget: Budget, random: object
) -> None:
    shuffled = list(pool)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    once, again = select(pool, policy, budget), select(shuffled, policy, budget)
    assert plan_bytes(once, **MODELS) == plan_bytes(again, **MODELS)
    assert pool_bytes(once, **MODELS) == pool_bytes(again, **MODELS)


@given(pools(), policies, budgets())
def test_kept_spans_never_nest_nor_repeat_one_another(
    pool: list[Candidate], policy: SelectionPolicy, budget: Budget
) -> None:
    out = (Outcome.DUPLICATE, Outcome.UNSLICEABLE)
    kept = [v.candidate for v in select(pool, policy, budget).verdicts if v.outcome not in out]
    for a, b in combinations(kept, 2):
        assert reference.overlap(a, b) < 1.0
        assert reference.overlap(a, b) <= policy.dedup_overlap


@given(pools(), policies, budgets())
def test_dedup_is_idempotent(pool: list[Candidate], policy: SelectionPolicy, budget: Budget) -> None:
    kept = [v.candidate for v in select(pool, policy, budget).verdicts if v.outcome is not Outcome.DUPLICATE]
    assert select(kept, policy, budget).stats["duplicate"] == 0


@given(pools(), policies, budgets(), st.data())
@settings(max_examples=300)
def test_raising_the_score_of_a_selected_span_never_unselects_it(
    pool: list[Candidate], policy: SelectionPolicy, budget: Budget, data: st.DataObject
) -> None:
    selected = [v.candidate for v in select(pool, policy, budget).selected]
    if not selected:
        return
    chosen = data.draw(st.sampled_from(selected))
    higher = replace(chosen, score=data.draw(st.floats(chosen.score, 2.0)))
    raised = [higher if c.ref == chosen.ref else c for c in pool]
    assert chosen.ref in [v.candidate.ref for v in select(raised, policy, budget).selected]


@given(pools(), policies, budgets())
def test_tokens_are_stranded_only_by_the_cap(
    pool: list[Candidate], policy: SelectionPolicy, budget: Budget
) -> None:
    selection = select(pool, policy, budget)
    left = budget.budget - selection.used if selection.stats["over_source_cap"] else 0
    assert selection.stats["budget_stranded_by_cap"] == left


@given(pools(), policies, budgets())
def test_a_sufficient_budget_suffices_and_one_less_does_not(
    pool: list[Candidate], policy: SelectionPolicy, budget: Budget
) -> None:
    refusal = insufficient(select(pool, policy, budget))
    if refusal is None:
        assert select(pool, policy, budget).selected
        return
    if refusal.reason == "empty_pool":
        assert not any(c.sliceable for c in pool)
        return

    def fits(requested: int) -> bool:
        asked = resolve_budget(
            requested,
            counter=budget.counter,
            bound="estimate" if budget.estimate else "exact",
            max_frac=budget.max_frac,
            max_budget=budget.ceiling,
        )
        return bool(select(pool, policy, asked).selected)

    if refusal.sufficient_budget is None:
        assert budget.ceiling is not None
        assert not fits(max(1, budget.ceiling))
    else:
        assert fits(refusal.sufficient_budget)
        assert refusal.sufficient_budget == 1 or not fits(refusal.sufficient_budget - 1)


@given(texts)
def test_counting_from_the_ledger_equals_counting_the_text(text: str) -> None:
    ascii_bytes = sum(ord(c) < 128 for c in text)
    figures = (ascii_bytes, len(text) - ascii_bytes, len(text.encode()))
    for ledger_counter in (ScriptCounter(), ByteCounter()):
        assert ledger_counter.count(text) == ledger_counter.count_ledger(*figures)


@given(texts)
def test_bytes_are_an_upper_bound_of_real_encodings(text: str) -> None:
    for name in ("openai:o200k_base", "openai:cl100k_base"):
        assert counter(name, {}).count(text) <= ByteCounter().count(text)


@given(pools(max_size=6), policies, budgets())
def test_a_negative_zero_is_a_zero(pool: list[Candidate], policy: SelectionPolicy, budget: Budget) -> None:
    plus = [replace(c, score=0.0, text_hash=NO_TEXT_HASH) for c in pool]
    minus = [replace(c, score=-0.0, text_hash=NO_TEXT_HASH) for c in pool]
    assert pool_bytes(select(plus, policy, budget), **MODELS) == pool_bytes(
        select(minus, policy, budget), **MODELS
    )
