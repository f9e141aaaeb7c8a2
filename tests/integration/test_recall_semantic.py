"""The semantic leg: the k nearest by exact similarity, of the universe that the restrictions leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import Planner, Settings
from planner.recall.score import normalise
from tests.integration.graph import QUESTION, V1, Connection, Graph, ask, at, fan, nodes_of

MARGIN_1 = Settings(**V1, max_frac_per_source=1.0, margin=1)


@pytest.fixture(scope="module")
def narrow(planner: Planner) -> Planner:
    """Give the same planner with the smallest margin, so that few nodes make a boundary."""
    return Planner(replace(planner.engine, settings=MARGIN_1))


def exact(vector: list[float], query: list[float]) -> float:
    """Return the similarity of recall.md in Python integers, which cannot round."""
    grids = [[round(float(x) * 2**20) for x in normalise([v])[0][0]] for v in (vector, query)]
    return min(1.0, max(0.0, float(sum(a * b for a, b in zip(*grids, strict=True))) / 2**40))


def best(angles: dict[str, float], k: int, *questions: float) -> dict[str, float]:
    """Return the k best by brute force, each with its similarity."""
    sims = {n: max(exact(at(a), at(q)) for q in questions) for n, a in angles.items()}
    return dict(sorted(sims.items(), key=lambda item: (-item[1], item[0]))[:k])


def semantic(planner: Planner, conn: Connection, scope: str, **fields: Any) -> dict[str, float]:
    nodes = nodes_of(conn, ask(planner, scope, hops=0, **fields))
    return {name: node["similarity"] for name, node in nodes.items()}


def names(count: int) -> list[str]:
    """Return ids whose order is not that of the numbers."""
    return [f"n{i * 37 % 101:03}" for i in range(count)]


def write(planner: Planner, scope: str, angles: dict[str, float]) -> None:
    graph = Graph()
    for name, angle in angles.items():
        graph.node(name, angle)
    graph.into(planner, scope)


def test_the_k_best_are_those_of_brute_force(narrow: Planner, conn: Connection, scope: str) -> None:
    angles = dict(zip(names(60), np.random.default_rng(7).uniform(0, 180, 60).tolist(), strict=True))
    write(narrow, scope, angles)
    for k in (1, 5, 30, 59, 64):
        assert semantic(narrow, conn, scope, k=k) == best(angles, k, 0)


def test_ties_at_the_boundary_go_to_the_smaller_ids_however_many_there_are(
    narrow: Planner, conn: Connection, scope: str
) -> None:
    angles = {name: 0.0 if i < 2 else 30.0 if i < 45 else 60.0 for i, name in enumerate(names(60))}
    write(narrow, scope, angles)
    plan = ask(narrow, scope, k=5, hops=0)
    found = {name: node["similarity"] for name, node in nodes_of(conn, plan).items()}
    assert found == best(angles, 5, 0)
    assert plan.recall["semantic"]["rounds"] > 1  # what one fetch returned could not decide it


def test_opposite_directions_tie_at_zero_and_the_smaller_id_wins(
    narrow: Planner, conn: Connection, scope: str
) -> None:
    angles = {"z": 100.0, "y": 110.0, "x": 120.0, "a": 170.0}
    write(narrow, scope, angles)
    assert semantic(narrow, conn, scope, k=1) == best(angles, 1, 0) == {"a": 0.0}


def test_differences_smaller_than_the_grid_are_ties(narrow: Planner, conn: Connection, scope: str) -> None:
    angles = {"b": 0.0, "a": 0.00001, "c": 0.00002, "d": 45.0}
    write(narrow, scope, angles)
    assert semantic(narrow, conn, scope, k=1) == best(angles, 1, 0) == {"a": 1.0}


def test_the_best_formulation_counts(planner: Planner, conn: Connection, scope: str) -> None:
    angles = {"near": 10.0, "far": 80.0, "between": 40.0, "behind": 179.0}
    write(planner, scope, angles)
    plan = ask(planner, scope, text="at 0", parts=["at 90"], k=2, hops=0)
    found = {name: node["similarity"] for name, node in nodes_of(conn, plan).items()}
    assert found == best(angles, 2, 0, 90)
    assert found.keys() == {"near", "far"}
    assert semantic(planner, conn, scope, parts=["at 90", "at 179"], k=1) == best(angles, 1, 90, 179)


def test_a_given_embedding_asks_in_place_of_the_text(planner: Planner, conn: Connection, scope: str) -> None:
    write(planner, scope, {"a": 0.0, "b": 90.0})
    assert semantic(planner, conn, scope, text="at 0", embedding=[0.0, 5.0], k=1) == {"b": 1.0}


def test_a_zero_vector_asks_nothing(planner: Planner, conn: Connection, scope: str) -> None:
    write(planner, scope, {"a": 0.0})
    plan = ask(planner, scope, embedding=[0.0, -0.0])
    assert nodes_of(conn, plan) == {}
    assert plan.stats["candidates"] == 0


def test_a_vector_is_stored_at_unit_length_and_a_zero_one_not_at_all(
    planner: Planner, conn: Connection, scope: str
) -> None:
    Graph().node("long").vector("long", [3e30, 4e30]).node("nil").vector("nil", [0.0, 0.0]).into(
        planner, scope
    )
    assert semantic(planner, conn, scope, embedding=[3.0, 4.0]) == {"long": 1.0}


def test_the_score_is_fused_in_the_order_of_the_page(planner: Planner, conn: Connection, scope: str) -> None:
    write(planner, scope, {"a": 33.0})
    node = nodes_of(conn, ask(planner, scope))["a"]
    assert node["score"] == 0.7 * exact(at(33.0), QUESTION) + (1 - 0.7) * 1.0


@pytest.mark.parametrize("restriction", ["must", "window"])
def test_the_restriction_defines_the_universe_before_top_k(
    narrow: Planner, conn: Connection, scope: str, restriction: str
) -> None:
    graph = Graph()
    for i in range(40):
        graph.node(f"near{i:02}", i / 10, attributes={"team": "red"}, valid_to="2020-01-01T00:00:00Z")
    for i in range(3):
        graph.node(f"far{i}", 80 + i, attributes={"team": "blue"}, valid_from="2020-01-01T00:00:00Z")
    graph.into(narrow, scope)
    blue = {"field": "attributes.team", "op": "eq", "value": "blue"}
    window = {"axis": "valid", "from": "2020-01-01T00:00:00Z"}
    fields = {"must": blue} if restriction == "must" else {"window": window}
    assert list(semantic(narrow, conn, scope, k=2, **fields)) == ["far0", "far1"]


def _dated(planner: Planner, scope: str) -> None:
    """Nodes whose interval or time touches the ends of the window [2020, 2021) in every way."""
    graph = Graph()
    before, first, inside, last, after = (
        "2019-01-01",
        "2020-01-01",
        "2020-06-01",
        "2021-01-01",
        "2022-01-01",
    )
    intervals = {
        "ends_at_start": (before, first),
        "ends_inside": (before, inside),
        "starts_at_start": (first, inside),
        "starts_at_end": (last, after),
        "spans_all": (before, after),
        "always": (None, None),
        "since_inside": (inside, None),
        "since_end": (last, None),
        "until_start": (None, first),
        "until_inside": (None, inside),
    }
    for name, (start, end) in intervals.items():
        graph.node(name, 0, valid_from=start, valid_to=end)
    for name, time in {"at_start": first, "observed_inside": inside, "at_end": last}.items():
        graph.node(name, 0, valid_from=after, observed_at=time)
    graph.into(planner, scope)


BEFORE_END = {"ends_at_start", "ends_inside", "starts_at_start", "spans_all", "since_inside", "until_start"}


@pytest.mark.parametrize(
    ("axis", "ends", "expected"),
    [
        ("valid", ("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"),
         {"ends_inside", "starts_at_start", "spans_all", "always", "since_inside", "until_inside"}),
        ("valid", (None, "2021-01-01T00:00:00Z"), BEFORE_END | {"always", "until_inside"}),
        ("valid", ("2022-01-01T00:00:00Z", None),
         {"always", "since_inside", "since_end", "at_start", "observed_inside", "at_end"}),
        ("observed", ("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"), {"at_start", "observed_inside"}),
        ("observed", ("2020-01-01T01:00:00+01:00", "2021-01-01T00:00:00Z"), {"at_start", "observed_inside"}),
        ("observed", (None, "2020-01-01T00:00:00Z"), set()),
        ("observed", ("2021-01-01T00:00:00Z", None), {"at_end"}),
    ],
)  # fmt: skip
def test_a_window_is_half_open_and_null_means_what_the_axis_says(
    planner: Planner,
    conn: Connection,
    scope: str,
    axis: str,
    ends: tuple[str | None, str | None],
    expected: set[str],
) -> None:
    _dated(planner, scope)
    window = {"axis": axis, **{k: v for k, v in zip(("from", "to"), ends, strict=True) if v}}
    assert semantic(planner, conn, scope, window=window).keys() == expected


def test_a_message_is_found_at_its_time_on_both_axes(planner: Planner, scope: str) -> None:
    messages = [{"content": f"message {i}", "time": f"2020-0{i}-01T00:00:00Z"} for i in (1, 2, 3)]
    planner.ingest_conversation(scope, "talk", messages)
    february = {"from": "2020-02-01T00:00:00Z", "to": "2020-03-01T00:00:00Z"}
    for axis, expected in (("observed", ["message 2"]), ("valid", ["message 1", "message 2"])):
        plan = ask(planner, scope, text="message", window={"axis": axis, **february}, hops=0)
        assert sorted(span.text or "" for span in plan.spans) == expected


def test_each_as_of_has_the_vectors_of_its_time(planner: Planner, conn: Connection, scope: str) -> None:
    fan(0, 10).into(planner, scope)
    Graph().node("n0", 90, text="Another fact.").into(planner, scope)
    now, then = exact(at(90), QUESTION), 1.0
    assert semantic(planner, conn, scope)["n0"] == semantic(planner, conn, scope, as_of=2)["n0"] == now
    assert semantic(planner, conn, scope, as_of=1)["n0"] == then
