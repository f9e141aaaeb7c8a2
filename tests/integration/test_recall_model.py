"""Recall on a real database agrees with recall.md written in Python, on small random graphs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from planner import Planner
from planner.ingest.ids import source_node_id
from tests.integration.graph import Connection, Graph, ask, at, fresh_scope, nodes_of
from tests.integration.recall_model import Ask, Edge, Node, as_row, pool, recalled

TEXT = "aaaa bbbb cccc dddd eeee"
SPANS = [(0, 4), (5, 9), (10, 14), (15, 19), (20, 24), (0, 9)]
ANGLES = [0.0, 0.0, 0.00001, 30.0, 60.0, 90.0, 120.0, 180.0]
"""Equal ones, ones that the grid makes equal, and ones behind the question."""

YEARS = [datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 2001, 2002, 2003)]

vectors = st.sampled_from(ANGLES).map(lambda degrees: (at(degrees)[0], at(degrees)[1]))
ENDS = [None, *YEARS]
INTERVALS = [(start, end) for start in ENDS for end in ENDS if not (start and end) or start < end]
intervals = st.sampled_from(INTERVALS)
kinds = st.sampled_from([frozenset(k) for k in (["fact"], ["claim"], ["fact", "claim"], ["claim", "source"])])


def seldom(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly None: a restriction that is always there leaves nothing to find."""
    return st.integers(0, 3).flatmap(lambda i: strategy if i == 3 else st.none())


@st.composite
def nodes(draw: st.DrawFn, node_id: str) -> Node:
    start, end = draw(intervals)
    return Node(
        node_id=node_id,
        kind=draw(st.sampled_from(["fact", "fact", "claim"])),
        vector=draw(st.none() | vectors),
        spans=tuple(sorted(draw(st.sets(st.sampled_from(SPANS), max_size=2)))),
        valid_from=start,
        valid_to=end,
        observed_at=draw(st.sampled_from([None, *YEARS])),
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Node], list[Edge]]:
    """Graphs of 4 to 11 nodes; the first has a vector, so that the file brings its model itself."""
    names = [f"n{i}" for i in range(draw(st.integers(4, 11)))]
    made = {name: draw(nodes(name)) for name in names}
    made["n0"] = Node("n0", vector=(1.0, 0.0), spans=((0, 4),))
    name, confidence = st.sampled_from(names), st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])
    edges = st.builds(Edge, name, name, st.sampled_from(["p", "q"]), confidence)
    key = st.lists(edges, min_size=4, max_size=24, unique_by=lambda e: (e.src, e.dst, e.predicate))
    return made, draw(key)


@st.composite
def questions(draw: st.DrawFn) -> Ask:
    window = st.tuples(st.sampled_from(["valid", "observed"]), st.sampled_from(INTERVALS[1:]))
    limit = st.integers(1, 5)
    return Ask(
        questions=tuple(draw(st.lists(vectors, max_size=2))),
        match=draw(st.none() | kinds),
        must=draw(seldom(kinds)),
        window=draw(seldom(window.map(lambda w: (w[0], *w[1])))),
        seeds=draw(st.dictionaries(st.sampled_from(["n0", "n1", "n9"]), st.sampled_from([0.0, 0.3, 1.0]))),
        k=draw(limit),
        hops=draw(st.integers(0, 2)),
        roots=draw(limit),
        fanout=draw(limit),
        direction=draw(st.sampled_from(["both", "out", "in"])),
        max_nodes=draw(st.integers(1, 12)),
        max_spans=draw(st.integers(1, 6)),
        min_score=draw(seldom(st.sampled_from([0.0, 0.25, 0.5]))),
    )


def written(made: dict[str, Node], edges: list[Edge]) -> Graph:
    graph = Graph().source("s", TEXT, sorted({span for node in made.values() for span in node.spans}))
    for node in made.values():
        graph.node(
            node.node_id,
            kind=node.kind,
            spans=[("s", *span) for span in node.spans],
            valid_from=node.valid_from and node.valid_from.isoformat(),
            valid_to=node.valid_to and node.valid_to.isoformat(),
            observed_at=node.observed_at and node.observed_at.isoformat(),
        )
        if node.vector:
            graph.vector(node.node_id, node.vector)
    for edge in edges:
        graph.edge(edge.src, edge.dst, edge.confidence, edge.predicate)
    return graph


def request(asked: Ask) -> dict[str, Any]:
    """Return the request's fields; one question goes as an embedding, two as formulations."""

    def among(allowed: frozenset[str]) -> dict[str, Any]:
        return {"field": "kind", "op": "in", "value": sorted(allowed)}

    names = ("k", "hops", "roots", "fanout", "direction", "max_nodes", "max_spans", "min_score")
    fields: dict[str, Any] = {name: getattr(asked, name) for name in names}
    fields["seeds"] = [{"node_id": name, "score": score} for name, score in asked.seeds.items()]
    angles = [next(a for a in ANGLES if at(a) == list(q)) for q in asked.questions]
    if angles:
        fields |= {"text": f"at {angles[0]}", "parts": [f"at {angle}" for angle in angles[1:]]}
    if asked.match is not None:
        fields["match"] = among(asked.match)
    if asked.must is not None:
        fields["must"] = among(asked.must)
    if asked.window is not None:
        axis, start, end = asked.window
        ends = {"from": start and start.isoformat(), "to": end and end.isoformat()}
        fields["window"] = {"axis": axis, **{name: time for name, time in ends.items() if time}}
    return fields


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(graph=graphs(), asked=questions())
def test_recall_finds_scores_and_cuts_as_the_page_says(
    planner: Planner, conn: Connection, graph: tuple[dict[str, Node], list[Edge]], asked: Ask
) -> None:
    made, edges = graph
    assume(asked.questions or asked.match is not None or asked.seeds)  # else it is refused
    scope = fresh_scope("model")
    written(made, edges).into(planner, scope)
    made = {**made, source_node_id("s"): Node(source_node_id("s"), kind="source")}

    plan = ask(planner, scope, **request(asked))

    found = recalled(made, edges, asked)
    order = sorted(found, key=lambda n: (-found[n].score, n))
    expected = {n: as_row(found[n], cut=order.index(n) >= asked.max_nodes) for n in found}
    assert nodes_of(conn, plan) == expected
    candidates = [s.verdict.candidate for s in (*plan.spans, *plan.rejected)]
    assert {(c.start, c.end): (c.score, c.node_id) for c in candidates} == pool(made, found, asked)
    event(f"{len(found)} nodes, {len(candidates)} candidates")
