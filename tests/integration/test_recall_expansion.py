"""The expansion leg: which nodes one or two hops reach, by which path, at what decay and score."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from planner import Planner
from tests.integration.graph import Connection, Graph, ask, nodes_of

RED = {"field": "attributes.team", "op": "eq", "value": "red"}


def chain(*ids: str, confidence: float = 1.0) -> Graph:
    """Return a graph of nodes without vectors, each with an edge to the next."""
    graph = Graph()
    for node_id in ids:
        graph.node(node_id, attributes={"team": "red"})
    for src, dst in pairwise(ids):
        graph.edge(src, dst, confidence)
    return graph.node("elsewhere", 0)


def walk(
    planner: Planner, conn: Connection, scope: str, *seeds: str, **fields: Any
) -> dict[str, dict[str, Any]]:
    """Return what the walk reached from these seeds, by node."""
    asked = [{"node_id": seed} for seed in seeds]
    nodes = nodes_of(conn, ask(planner, scope, seeds=asked, **fields))
    return {name: node for name, node in nodes.items() if "expansion" in node["legs"]}


def test_decay_is_the_product_of_confidence_and_hop_decay_in_path_order(
    planner: Planner, conn: Connection, scope: str
) -> None:
    chain("a", "b", "c", "d", confidence=0.3).into(planner, scope)
    found = walk(planner, conn, scope, "a")
    assert found["b"]["decay"] == 1.0 * (0.3 * 0.5)
    assert found["c"]["decay"] == 1.0 * (0.3 * 0.5) * (0.3 * 0.5)
    assert (found["c"]["hops"], found["c"]["path"]) == (2, ["a", "b", "c"])
    assert found["c"]["score"] == found["c"]["decay"]  # no vector: decay alone
    assert found.keys() == {"b", "c"}


@pytest.mark.parametrize(("hops", "reached"), [(0, set()), (1, {"b"}), (2, {"b", "c"})])
def test_as_many_hops_as_were_asked_for(
    planner: Planner, conn: Connection, scope: str, hops: int, reached: set[str]
) -> None:
    chain("a", "b", "c", "d").into(planner, scope)
    assert walk(planner, conn, scope, "a", hops=hops).keys() == reached


@pytest.mark.parametrize(
    ("direction", "reached"), [("out", {"c", "d"}), ("in", {"a"}), ("both", {"a", "c", "d"})]
)
def test_edges_are_followed_in_the_direction_that_was_asked_for(
    planner: Planner, conn: Connection, scope: str, direction: str, reached: set[str]
) -> None:
    chain("a", "b", "c", "d").into(planner, scope)
    assert walk(planner, conn, scope, "b", direction=direction).keys() == reached


def test_a_node_with_a_vector_fuses_its_similarity_with_the_decay(
    planner: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("a").node("b", 60).node("q", 0).edge("a", "b", 0.8).into(planner, scope)
    seeds = [{"node_id": "a"}]
    asked = nodes_of(conn, ask(planner, scope, seeds=seeds, embedding=[1.0, 0.0], k=1))["b"]
    assert asked["legs"] == ["expansion"]
    assert asked["score"] == 0.7 * asked["similarity"] + (1 - 0.7) * 0.4
    assert abs(asked["similarity"] - 0.5) < 1e-5
    silent = nodes_of(conn, ask(planner, scope, seeds=seeds))["b"]
    assert (silent["similarity"], silent["score"]) == (None, 0.4)


def test_the_best_path_wins_though_it_is_longer(planner: Planner, conn: Connection, scope: str) -> None:
    graph = chain("a", "b", "c").edge("a", "c", 0.4)
    graph.into(planner, scope)
    found = walk(planner, conn, scope, "a")["c"]
    assert (found["path"], found["decay"], found["hops"]) == (["a", "b", "c"], 0.25, 2)


def test_equal_decays_go_to_the_smaller_path(planner: Planner, conn: Connection, scope: str) -> None:
    graph = Graph()
    for node_id in ("a", "b", "B", "é", "z", "end"):
        graph.node(node_id)
    for middle in ("b", "B", "é", "z"):
        graph.edge("a", middle).edge(middle, "end")
    graph.node("far", 0).edge("a", "end", 0.5).into(planner, scope)
    found = walk(planner, conn, scope, "a")
    assert found["end"]["path"] == ["a", "B", "end"]  # by bytes: upper case first


def test_nothing_is_reached_through_a_node_that_must_or_window_excludes(
    planner: Planner, conn: Connection, scope: str
) -> None:
    chain("a", "b", "c").node("x", attributes={"team": "blue"}, valid_to="2020-01-01T00:00:00Z").node(
        "y", attributes={"team": "red"}
    ).edge("a", "x").edge("x", "y").into(planner, scope)
    window = {"axis": "valid", "from": "2020-01-01T00:00:00Z"}
    for restriction in ({"must": RED}, {"window": window}):
        assert walk(planner, conn, scope, "a", **restriction).keys() == {"b", "c"}
    assert walk(planner, conn, scope, "a").keys() == {"b", "c", "x", "y"}


def test_fanout_counts_after_restriction_by_confidence_predicate_and_id(
    planner: Planner, conn: Connection, scope: str
) -> None:
    graph = chain("a")
    for node_id, confidence, predicate in (
        ("excluded", 1.0, "a"),
        ("first", 0.9, "z"),
        ("second", 0.5, "p"),
        ("fourth", 0.5, "q"),
        ("third", 0.5, "p"),
        ("fifth", 0.4, "a"),
    ):
        team = "blue" if node_id == "excluded" else "red"
        graph.node(node_id, attributes={"team": team}).edge("a", node_id, confidence, predicate)
    graph.into(planner, scope)
    order = ["first", "second", "third", "fourth", "fifth"]
    for fanout in (1, 2, 3, 4, 5):
        assert walk(planner, conn, scope, "a", must=RED, fanout=fanout).keys() == set(order[:fanout])


def test_fanout_counts_both_directions_together(planner: Planner, conn: Connection, scope: str) -> None:
    graph = chain("a")
    for node_id, confidence, inward in (("o1", 0.9, False), ("i1", 0.8, True), ("o2", 0.7, False)):
        graph.node(node_id).edge(*(node_id, "a") if inward else ("a", node_id), confidence)
    graph.into(planner, scope)
    assert walk(planner, conn, scope, "a", fanout=2).keys() == {"o1", "i1"}
    assert walk(planner, conn, scope, "a", fanout=2, direction="out").keys() == {"o1", "o2"}


def test_the_order_of_both_directions_is_by_predicate_before_id(
    planner: Planner, conn: Connection, scope: str
) -> None:
    graph = chain("a").node("y").node("x").edge("a", "y", 0.5, "first").edge("x", "a", 0.5, "second")
    graph.into(planner, scope)
    assert walk(planner, conn, scope, "a", fanout=1).keys() == {"y"}


def test_a_walk_never_returns_to_its_own_path(planner: Planner, conn: Connection, scope: str) -> None:
    chain("a", "b").edge("b", "a").edge("a", "a", 0.9).into(planner, scope)
    assert walk(planner, conn, scope, "a").keys() == {"b"}


def test_a_root_is_reached_from_another_root_through_a_node_that_it_reaches_better(
    planner: Planner, conn: Connection, scope: str
) -> None:
    graph = Graph().node("a").node("b").node("m").node("q", 0).edge("a", "m").edge("b", "m", 0.5)
    graph.into(planner, scope)
    seeds = [{"node_id": "a", "score": 0.0}, {"node_id": "b", "score": 0.0}]
    nodes = nodes_of(conn, ask(planner, scope, seeds=seeds))
    assert (nodes["a"]["path"], nodes["a"]["score"]) == (["b", "m", "a"], 0.125)
    assert (nodes["b"]["path"], nodes["b"]["score"]) == (["a", "m", "b"], 0.125)


def test_only_the_best_roots_are_walked_from(planner: Planner, conn: Connection, scope: str) -> None:
    graph = Graph().node("far", 0)
    for root in ("b", "a", "c"):
        graph.node(root).node(f"{root}2").edge(root, f"{root}2")
    graph.into(planner, scope)
    seeds = [{"node_id": n, "score": s} for n, s in (("a", 0.5), ("b", 0.5), ("c", 0.9))]
    for roots, reached in ((1, {"c2"}), (2, {"c2", "a2"}), (3, {"c2", "a2", "b2"})):
        assert (
            nodes_of(conn, ask(planner, scope, seeds=seeds, roots=roots)).keys() == {"a", "b", "c"} | reached
        )


def test_an_edge_is_walked_as_of_its_time_only(planner: Planner, conn: Connection, scope: str) -> None:
    chain("a", "b").into(planner, scope)
    Graph().node("a", attributes={"team": "red"}).node("c", 90).edge("a", "c").into(planner, scope)
    assert walk(planner, conn, scope, "a").keys() == {"c"}
    assert walk(planner, conn, scope, "a", as_of=1).keys() == {"b"}
