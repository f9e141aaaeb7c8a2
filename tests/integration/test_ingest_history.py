"""Ingest in transaction time: a version where something changed, nothing where nothing did or it failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from planner import Planner, Settings
from planner.errors import ConflictingInput, EmbedderError
from planner.ingest import scope_id
from planner.types import OPEN_TX
from tests.integration.graph import Connection, Graph, ask, circle, circle_embedder, fan, nodes_of, rows_of

A = "# Title\n\nThe first paragraph.\n\nThe second at 30.\n\nThe third at 60.\n"
B = A.replace("The second at 30.", "The changed one at 90.")


class Counting:
    """The circle's embedder, which keeps what it was asked to embed."""

    name, revision, dimensions = "circle", "", 2

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.before: Callable[[], object] = lambda: None

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.before()
        self.asked += texts
        return circle(list(texts))

    def taken(self) -> list[str]:
        asked, self.asked = sorted(self.asked), []
        return asked


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def writer(planner: Planner, counting: Counting) -> Iterator[Planner]:
    yield Planner.from_pool(
        planner.engine.store.pool, settings=Settings(max_frac_per_source=1.0), embedder=counting
    )


def current(conn: Connection, scope: str) -> dict[str, tuple[Any, ...]]:
    """Return the current nodes with their time, what they derive from, and their vector."""
    rows = conn.execute(
        "SELECT n.node_id, n.tx_from, ns.version_tx, ns.span_start, e.tx_from, e.vec::text"
        " FROM planner.node n"
        " LEFT JOIN planner.node_span ns ON (ns.scope_id, ns.node_id, ns.node_tx_from) ="
        " (n.scope_id, n.node_id, n.tx_from)"
        " LEFT JOIN planner.embedding e ON"
        " (e.scope_id, e.node_id, e.tx_to) = (n.scope_id, n.node_id, n.tx_to)"
        " WHERE n.scope_id = %s AND n.tx_to = %s",
        (scope_id(scope), OPEN_TX),
    )
    return {row[0]: row[1:] for row in rows}


def test_ingesting_the_same_again_writes_nothing(
    writer: Planner, counting: Counting, conn: Connection, scope: str
) -> None:
    about: dict[str, Any] = {"title": "Told", "trust": "internal", "attributes": {"a": [1, {"b": None}]}}
    first = writer.ingest_text(scope, "doc.md", A, **about)
    assert (first.sources[0].status, counting.taken() != []) == ("new", True)
    before = rows_of(conn, scope)
    for text in (A, A.replace("\n", "\r\n"), A.encode()):
        again = writer.ingest_text(scope, "doc.md", text, **about)
        assert (again.sources[0].status, again.sources[0].version_tx, again.counts) == ("unchanged", 1, {})
    assert rows_of(conn, scope) == before
    assert counting.taken() == []


def test_the_same_graph_again_writes_nothing(writer: Planner, conn: Connection, scope: str) -> None:
    graph = fan(0, 10).edge("n0", "n1", 0.5, valid_from="2020-01-01T00:00:00Z")
    graph.into(writer, scope)
    before = rows_of(conn, scope)
    assert graph.into(writer, scope).counts == {}
    assert rows_of(conn, scope) == before


def test_a_to_b_to_a_is_version_3_and_unchanged_paragraphs_keep_node_and_vector(
    writer: Planner, counting: Counting, conn: Connection, scope: str
) -> None:
    history = []
    for text in (A, B, A):
        report = writer.ingest_text(scope, "doc.md", text)
        history.append((report.sources[0].version_tx, counting.taken(), current(conn, scope)))
    (one, first, of_a), (two, second, of_b), (three, third, again) = history
    assert (one, two, three) == (1, 2, 3)
    assert (len(first), second, third) == (4, ["The changed one at 90."], [])  # A's vectors are found by hash
    kept = of_a.keys() & of_b.keys()
    assert {name: of_b[name] for name in kept} == {name: of_a[name] for name in kept}
    assert len(kept) == len(of_a) - 1 == len(of_b) - 1
    (changed,) = again.keys() - kept
    assert changed in of_a
    assert (of_a[changed][0], again[changed][0], again[changed][1]) == (1, 3, 3)
    assert again[changed][-1] == of_a[changed][-1]  # the same vector, bit by bit
    assert writer.plan(scope, "at 30", k=1, hops=0).spans[0].text == "The second at 30."


def test_the_ledger_gains_one_entry_a_transaction_and_live_nodes_are_counted(
    writer: Planner, conn: Connection, scope: str
) -> None:
    for text in (A, A, B, A):
        writer.ingest_text(scope, "doc.md", text)
    row = conn.execute(
        "SELECT s.last_tx, s.live_nodes, (SELECT array_agg(tx ORDER BY tx) FROM planner.ledger l"
        " WHERE l.scope_id = s.scope_id) FROM planner.scope s WHERE s.scope_id = %s",
        (scope_id(scope),),
    ).fetchone()
    assert row == (3, len(current(conn, scope)), [1, 2, 3])


@pytest.mark.parametrize(
    "change", [{"title": "Other"}, {"trust": "verified"}, {"attributes": {"k": 1}}, {"uri": "file:x"}]
)
def test_other_metadata_makes_a_version_whose_nodes_are_derived_again(
    writer: Planner, counting: Counting, conn: Connection, scope: str, change: dict[str, Any]
) -> None:
    writer.ingest_text(scope, "doc.md", A)
    counting.taken()
    assert writer.ingest_text(scope, "doc.md", A, **change).sources[0].status == "changed"
    assert {row[0] for name, row in current(conn, scope).items() if row[1]} == {2}
    assert counting.taken() == []  # the texts are the same, so are the vectors


def test_a_failed_embedder_leaves_no_row_in_a_new_scope_and_none_in_an_old_one(
    writer: Planner, counting: Counting, conn: Connection, scope: str
) -> None:
    def fail() -> None:
        raise RuntimeError("out of memory")

    counting.before = fail
    with pytest.raises(EmbedderError, match="out of memory"):
        writer.ingest_text(scope, "doc.md", A)
    assert set(rows_of(conn, scope).values()) == {0}
    counting.before = lambda: None
    writer.ingest_text(scope, "doc.md", A)
    before, counting.before = rows_of(conn, scope), fail
    with pytest.raises(EmbedderError):
        writer.ingest_text(scope, "doc.md", B)
    assert rows_of(conn, scope) == before


def test_a_graph_that_is_refused_inside_the_transaction_leaves_no_row(
    writer: Planner, conn: Connection, scope: str
) -> None:
    with pytest.raises(ConflictingInput, match="'nobody'"):
        fan(0).edge("n0", "nobody").into(writer, scope)
    assert set(rows_of(conn, scope).values()) == {0}
    fan(0).into(writer, scope)
    before = rows_of(conn, scope)
    with pytest.raises(ConflictingInput, match="'nobody'"):
        fan(0, 10).edge("n0", "nobody").into(writer, scope)
    assert rows_of(conn, scope) == before


def test_a_node_that_leaves_the_graph_ends_with_its_edges_and_its_vector(
    writer: Planner, conn: Connection, scope: str
) -> None:
    Graph().source("s", "one two", [(0, 3), (4, 7)]).node("a", 0, spans=[("s", 0, 3)]).node(
        "b", 10, spans=[("s", 4, 7)]
    ).edge("a", "b").into(writer, scope)
    Graph().source("s", "one.", [(0, 3)]).node("a", 0, spans=[("s", 0, 3)]).into(writer, scope)
    now, then = nodes_of(conn, ask(writer, scope)), nodes_of(conn, ask(writer, scope, as_of=1))
    assert (set(now), set(then)) == ({"a"}, {"a", "b"})
    open_edges = "SELECT count(*) FROM planner.edge WHERE scope_id = %s AND tx_to = %s"
    assert conn.execute(open_edges, (scope_id(scope), OPEN_TX)).fetchone() == (0,)


def test_other_spans_of_the_same_text_make_a_version_whose_ledger_has_them(
    writer: Planner, conn: Connection, scope: str
) -> None:
    Graph().source("s", "one two", [(0, 3)]).node("a", 0, spans=[("s", 0, 3)]).into(writer, scope)
    graph = Graph().source("s", "one two", [(0, 3), (4, 7)], kind="code").node("a", 0, spans=[("s", 0, 3)])
    graph.node("b", 10, spans=[("s", 4, 7)]).into(writer, scope)
    plan = ask(writer, scope)
    assert [s.verdict.candidate.kind for s in plan.spans if s.text == "two"] == ["code"]
    assert plan.stats["kind_missing"] == 0
    assert graph.into(writer, scope).counts == {}


def test_a_vector_of_zeros_is_no_vector(writer: Planner, conn: Connection, scope: str) -> None:
    zero = Planner.from_pool(
        writer.engine.store.pool,
        embedder=type(circle_embedder())("circle", 2, lambda texts: [[0.0, 0.0]] * len(texts)),
    )
    report = zero.ingest_text(scope, "doc.md", A)
    assert (report.counts["nodes"], report.counts["embeddings"]) == (5, 0)
    plan = writer.plan(scope, match={"field": "kind", "op": "eq", "value": "paragraph"}, hops=0)
    assert plan.stats["selected"] == 3
