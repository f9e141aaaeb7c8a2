"""A plan request: every field's bad input is refused by name, everything else survives a round trip."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import RequestError
from planner.request import MAX_FILTER_DEPTH, PlanRequest
from planner.settings import load

ASKED: dict[str, Any] = {"scope": "docs", "text": "when does the harbour open?"}
EVERYTHING: dict[str, Any] = {
    "scope": "docs",
    "text": "when?",
    "parts": ["where?", "who?"],
    "match": {"all": [{"field": "kind", "op": "eq", "value": "paragraph"}, {"any": []}]},
    "must": {"not": {"field": "attributes.a.b", "op": "in", "value": [1, "x", None, True]}},
    "window": {"axis": "observed", "from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00+01:00"},
    "seeds": [{"node_id": "n", "score": 0.5}],
    "k": 5,
    "hops": 0,
    "direction": "out",
    "min_score": 0.1,
    "method": "exact",
    "budget_tokens": 100,
    "model": "gpt-4o",
    "context_window": 1000,
    "counter": "utf8-bytes-v1",
    "plan_model": "v2",
    "profile": "diverse",
    "allow_ungrounded": True,
    "as_of": 7,
}


def deep(levels: int) -> dict[str, Any]:
    node: dict[str, Any] = {"field": "kind", "op": "eq", "value": "x"}
    for _ in range(levels):
        node = {"not": node}
    return node


def test_a_request_survives_its_own_json() -> None:
    request = PlanRequest.parse(EVERYTHING)
    assert PlanRequest.parse(request.to_dict()) == request


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scope", ""),
        ("scope", "a b"),
        ("scope", "-a"),
        ("scope", "x" * 64),
        ("scope", 5),
        ("text", ""),
        ("text", "x" * 100_001),
        ("text", 5),
        ("parts", ["a", ""]),
        ("parts", ["a"] * 33),
        ("parts", "a"),
        ("embedding", []),
        ("embedding", [1.0, "x"]),
        ("embedding", [float("nan")]),
        ("embedding", [float("inf")]),
        ("embedding", [1e31]),
        ("window", {}),
        ("window", {"from": "yesterday"}),
        ("window", {"from": "2026-01-01T00:00:00"}),
        ("window", {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}),
        ("window", {"axis": "created", "from": "2026-01-01T00:00:00Z"}),
        ("window", {"since": "2026-01-01T00:00:00Z"}),
        ("seeds", [{"score": 1.0}]),
        ("seeds", [{"node_id": ""}]),
        ("seeds", [{"node_id": "n", "score": 1.5}]),
        ("seeds", [{"node_id": "n"}] * 1_001),
        ("k", 0),
        ("k", True),
        ("k", 1.0),
        ("k", "5"),
        ("hops", -1),
        ("hops", 3),
        ("roots", 0),
        ("fanout", 0),
        ("structured_limit", 0),
        ("max_nodes", 0),
        ("max_spans", 2**53 + 1),
        ("direction", "up"),
        ("min_score", -0.1),
        ("min_score", float("nan")),
        ("method", "fast"),
        ("budget_tokens", 0),
        ("budget_tokens", -5),
        ("budget_tokens", 1.5),
        ("model", ""),
        ("context_window", 0),
        ("counter", ""),
        ("plan_model", "v3"),
        ("profile", "wide"),
        ("allow_ungrounded", "yes"),
        ("as_of", -1),
        ("as_of", "2026-01-01"),
    ],
)
def test_a_field_s_bad_value_is_refused_by_the_field_s_name(field: str, value: object) -> None:
    with pytest.raises(RequestError) as refused:
        PlanRequest.parse({**ASKED, field: value})
    assert str(refused.value.detail["field"]).split(".")[0] == field
    assert field in str(refused.value)


@pytest.mark.parametrize("name", ["match", "must"])
@pytest.mark.parametrize(
    "condition",
    [
        {"field": "colour", "op": "eq", "value": "x"},
        {"field": "attributes.", "op": "eq", "value": "x"},
        {"field": "attributes.a..b", "op": "eq", "value": "x"},
        {"field": "kind", "op": "like", "value": "x"},
        {"field": "kind", "op": "eq", "value": 3},
        {"field": "kind", "op": "eq", "value": ["x"]},
        {"field": "kind", "op": "in", "value": "x"},
        {"field": "kind", "op": "prefix", "value": None},
        {"field": "attributes.a", "op": "contains", "value": 3},
        {"field": "attributes.a", "op": "gte", "value": True},
        {"field": "confidence", "op": "prefix", "value": "0"},
        {"field": "confidence", "op": "eq", "value": "high"},
        {"field": "trust", "op": "eq", "value": "blind"},
        {"field": "class", "op": "in", "value": ["truth", "lies"]},
        {"field": "kind", "op": "eq"},
        {"field": "kind", "op": "eq", "value": "x", "case": False},
        {"field": "kind", "op": "eq", "value": {"a": 1}},
        {"all": {"field": "kind", "op": "eq", "value": "x"}},
        {"any": [3]},
        {"not": None},
        {"all": [], "any": []},
        {},
        "kind = x",
    ],
)
def test_a_filter_that_says_nothing_valid_is_refused(name: str, condition: object) -> None:
    with pytest.raises(RequestError, match=name):
        PlanRequest.parse({**ASKED, name: condition})


def test_filters_nest_to_the_limit_and_no_deeper() -> None:
    PlanRequest.parse({**ASKED, "must": deep(MAX_FILTER_DEPTH - 1)})
    for levels in (2 * MAX_FILTER_DEPTH + 1, 100_000):
        with pytest.raises(RequestError, match="nested deeper"):
            PlanRequest.parse({**ASKED, "must": deep(levels)})


@pytest.mark.parametrize("bad", ["a\x00b", "a\ud800b"])
@pytest.mark.parametrize("where", ["text", "must", "seeds"])
def test_text_that_postgresql_cannot_hold_is_refused(where: str, bad: str) -> None:
    value = {
        "text": bad,
        "must": {"field": "label", "op": "in", "value": ["fine", bad]},
        "seeds": [{"node_id": bad}],
    }[where]
    with pytest.raises(RequestError, match="not allowed"):
        PlanRequest.parse({**ASKED, where: value})


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(RequestError, match="unknown field 'budget'"):
        PlanRequest.parse({**ASKED, "budget": 5})


@pytest.mark.parametrize("data", [{}, {"scope": "docs"}, {"scope": "docs", "must": deep(0)}])
def test_a_request_that_asks_nothing_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=r"scope|ask something"):
        PlanRequest.parse(data)


def test_parts_and_an_embedding_exclude_one_another() -> None:
    with pytest.raises(RequestError, match="not both"):
        PlanRequest.parse({"scope": "docs", "parts": ["a"], "embedding": [1.0]})


def test_a_request_lowers_the_operator_s_limits_and_never_raises_them() -> None:
    settings = load({"k": 10, "max_spans": 100}, environ={}).settings
    effective = PlanRequest(**ASKED, k=3).effective(settings)
    assert (effective.k, effective.max_spans, effective.budget_tokens) == (3, 100, settings.default_budget)
    with pytest.raises(RequestError, match="k = 11 is above the operator's limit 10"):
        PlanRequest(**ASKED, k=11).effective(settings)


def test_a_profile_narrows_the_operator_s_cap_and_never_widens_it() -> None:
    settings = load({"profile": "document", "max_frac_per_source": 0.6}, environ={}).settings
    narrowed = PlanRequest(**ASKED, profile="diverse").within(settings)
    assert (narrowed.profile, narrowed.max_frac_per_source) == ("diverse", 0.4)
    with pytest.raises(RequestError, match=r"'document' lets one source take 1 of a plan, above .* 0\.4"):
        PlanRequest(**ASKED, profile="document").within(narrowed)
    tight = load({"max_frac_per_source": 0.3, "profile": "document"}, environ={}).settings
    with pytest.raises(RequestError, match=r"'diverse' lets one source take 0\.4 .* limit 0\.3"):
        PlanRequest(**ASKED, profile="diverse").within(tight)


@pytest.mark.parametrize("profile", [None, "document"])
def test_without_a_profile_or_with_the_operator_s_own_nothing_changes(profile: Any) -> None:
    settings = load({"profile": "document", "max_frac_per_source": 0.6}, environ={}).settings
    assert PlanRequest(**ASKED, profile=profile).within(settings) is settings
