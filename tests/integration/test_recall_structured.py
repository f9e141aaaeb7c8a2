"""The structured leg: what each field and operator matches, what a missing value is, and what seeds bring."""

from __future__ import annotations

from typing import Any

import pytest

from planner import Planner
from tests.integration.graph import Connection, Graph, ask, fresh_scope, nodes_of

FIRST, SECOND, BARE = {"first"}, {"second"}, {"bare"}
BOTH, ALL = FIRST | SECOND, FIRST | SECOND | BARE


@pytest.fixture(scope="module")
def library(planner: Planner) -> str:
    """Three nodes: two with provenance and attributes, one that has neither."""
    name = fresh_scope("library")
    graph = Graph()
    graph.node(
        "first",
        text="The first text.",
        source={"trust": "internal", "class": "truth"},
        kind="person",
        label="Ada",
        confidence=0.5,
        attributes={
            "n": 1,
            "tag": "red",
            "tags": ["a", "b"],
            "deep": {"er": [10, "x"]},
            "on": True,
            "nil": None,
        },
    )
    graph.node(
        "second",
        text="The second text.",
        source={"trust": "untrusted", "class": "cache"},
        kind="place",
        label="Adana",
        confidence=0.75,
        attributes={"n": 20, "tag": "reddish", "tags": "a list", "on": False},
    )
    graph.node("bare", kind="person", label="", angle=0)
    graph.into(planner, name)
    return name


def found(planner: Planner, conn: Connection, scope: str, **fields: Any) -> set[str]:
    """Return the nodes of the structured leg, the sources' own left out."""
    nodes = nodes_of(conn, ask(planner, scope, **fields))
    assert all(node["score"] == 1.0 and node["legs"] == ["structured"] for node in nodes.values())
    return nodes.keys() & ALL


def where(field: str, op: str, value: object) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


CONDITIONS: list[tuple[str, str, object, set[str]]] = [
    ("kind", "eq", "person", FIRST | BARE),
    ("kind", "in", ["place", "thing"], SECOND),
    ("kind", "in", [], set()),
    ("kind", "prefix", "pl", SECOND),
    ("kind", "contains", "ers", FIRST | BARE),
    ("kind", "gte", "place", SECOND),
    ("kind", "lte", "person", FIRST | BARE),
    ("label", "eq", "Ada", FIRST),
    ("label", "in", ["Ada", ""], FIRST | BARE),
    ("label", "prefix", "Ada", BOTH),
    ("label", "contains", "an", SECOND),
    ("label", "contains", "%", set()),
    ("label", "gte", "Adana", SECOND),
    ("label", "lte", "Ada", FIRST | BARE),
    ("source_id", "eq", "first.txt", FIRST),
    ("source_id", "in", ["first.txt", "second.txt"], BOTH),
    ("source_id", "prefix", "sec", SECOND),
    ("source_id", "contains", "_", set()),
    ("source_id", "gte", "g", SECOND),
    ("source_id", "lte", "first.txt", FIRST),
    ("class", "eq", "cache", SECOND),
    ("class", "in", ["truth", "cache"], BOTH),
    ("trust", "eq", "internal", FIRST),
    ("trust", "in", ["verified", "untrusted"], SECOND),
    ("trust", "gte", "untrusted", BOTH),
    ("trust", "gte", "external", FIRST),
    ("trust", "gte", "verified", set()),
    ("trust", "lte", "external", SECOND),
    ("confidence", "eq", 0.5, FIRST),
    ("confidence", "in", [0.5, 1], FIRST | BARE),
    ("confidence", "gte", 0.75, SECOND | BARE),
    ("confidence", "lte", 0.75, BOTH),
    ("attributes.n", "eq", 1, FIRST),
    ("attributes.n", "eq", 1.0, FIRST),
    ("attributes.n", "eq", "1", set()),
    ("attributes.n", "in", [20, "x", None], SECOND | BARE),
    ("attributes.n", "gte", 2, SECOND),
    ("attributes.n", "gte", 0.5, BOTH),
    ("attributes.n", "lte", 1, FIRST),
    ("attributes.n", "gte", "0", set()),
    ("attributes.tag", "eq", "red", FIRST),
    ("attributes.tag", "prefix", "red", BOTH),
    ("attributes.tag", "contains", "dish", SECOND),
    ("attributes.tag", "gte", "redd", SECOND),
    ("attributes.tag", "lte", "red", FIRST),
    ("attributes.tag", "gte", 0, set()),
    ("attributes.tags", "contains", "a", BOTH),
    ("attributes.tags", "contains", "b", FIRST),
    ("attributes.tags", "prefix", "a", SECOND),
    ("attributes.on", "eq", True, FIRST),
    ("attributes.on", "eq", 1, set()),
    ("attributes.on", "in", [False], SECOND),
    ("attributes.deep.er.1", "eq", "x", FIRST),
    ("attributes.deep.er.0", "gte", 10, FIRST),
    ("attributes.deep.er", "eq", "x", set()),
    ("attributes.nil", "eq", None, ALL),
    ("attributes.n", "eq", None, BARE),
    ("attributes.n.m", "eq", None, ALL),
]


@pytest.mark.parametrize(("field", "op", "value", "expected"), CONDITIONS)
def test_a_condition_matches_what_it_says_and_its_not_the_rest(
    planner: Planner, conn: Connection, library: str, field: str, op: str, value: object, expected: set[str]
) -> None:
    condition = where(field, op, value)
    assert found(planner, conn, library, match=condition) == expected
    assert found(planner, conn, library, match={"not": condition}) == ALL - expected


def test_filters_combine_as_their_words_say(planner: Planner, conn: Connection, library: str) -> None:
    person, named = where("kind", "eq", "person"), where("label", "prefix", "Ada")
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"all": [person, named]}, FIRST),
        ({"any": [person, named]}, ALL),
        ({"all": []}, ALL),
        ({"any": []}, set()),
        ({"not": {"all": [person, named]}}, SECOND | BARE),
        ({"not": {"not": person}}, FIRST | BARE),
        ({"all": [{"any": [person, named]}, {"not": person}]}, SECOND),
    ]
    for match, expected in cases:
        assert found(planner, conn, library, match=match) == expected, match


def test_a_value_is_data_whatever_it_looks_like(planner: Planner, conn: Connection, library: str) -> None:
    for value in ("' OR true --", "%s", "{restriction}", "\\", '"', "1; SELECT 1"):
        assert found(planner, conn, library, match=where("label", "eq", value)) == set()
        assert found(planner, conn, library, match=where(f"attributes.{value}", "eq", None)) == ALL


def test_must_restricts_match_and_seeds(planner: Planner, conn: Connection, library: str) -> None:
    person = where("kind", "eq", "person")
    assert found(planner, conn, library, match=where("label", "prefix", ""), must=person) == FIRST | BARE
    seeds = [{"node_id": "first"}, {"node_id": "second"}]
    plan = ask(planner, library, seeds=seeds, must=person, hops=0)
    assert nodes_of(conn, plan).keys() == {"first"}
    assert plan.recall["structured"]["missing_seeds"] == ["second"]


def test_seeds_score_what_they_say_and_missing_ones_are_named(
    planner: Planner, conn: Connection, library: str
) -> None:
    seeds = [{"node_id": "first", "score": 0.25}, {"node_id": "bare"}, {"node_id": "nobody", "score": 0.9}]
    plan = ask(planner, library, seeds=seeds, hops=0)
    assert {name: node["score"] for name, node in nodes_of(conn, plan).items()} == {
        "first": 0.25,
        "bare": 1.0,
    }
    assert plan.recall["structured"]["missing_seeds"] == ["nobody"]


def test_a_seed_that_matches_too_takes_the_larger_score(
    planner: Planner, conn: Connection, library: str
) -> None:
    seeds = [{"node_id": "first", "score": 0.25}]
    plan = ask(planner, library, seeds=seeds, match=where("label", "eq", "Ada"), hops=0)
    assert nodes_of(conn, plan)["first"]["score"] == 1.0


def test_structured_limit_cuts_by_node_id_and_says_so(
    planner: Planner, conn: Connection, library: str
) -> None:
    everything = where("label", "prefix", "")
    nodes = {}
    for limit in (5, 4):
        plan = ask(planner, library, match=everything, structured_limit=limit, hops=0)
        assert plan.recall["structured"]["cut"] is (limit == 4)
        nodes[limit] = sorted(nodes_of(conn, plan))
    assert len(nodes[5]) == 5  # three nodes and the two of their sources
    assert nodes[4] == nodes[5][:4]


def test_the_window_does_not_bound_what_is_matched(planner: Planner, conn: Connection, library: str) -> None:
    window = {"axis": "observed", "from": "2020-01-01T00:00:00Z"}
    assert found(planner, conn, library, match=where("label", "eq", "Ada"), window=window) == FIRST
