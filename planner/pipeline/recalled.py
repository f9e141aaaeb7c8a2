"""What a plan's recall found, in words that people know: nodes by name, and the ways that led to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from planner.engine import Engine
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.browse import check_page
from planner.pipeline.explain import read_as_of
from planner.store.connect import Connection, columns, run
from planner.store.retry import retried
from planner.types import PlanRef, Reached, RecalledNode

MAX_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a way: the node that it comes to, and by which edge, where that is there as of the plan.

    `forward` is None where the edge is not found any more.
    """

    node_id: str
    label: str | None
    predicate: str | None = None
    confidence: float | None = None
    forward: bool | None = None


@dataclass(frozen=True, slots=True)
class NamedNode:
    """A node that recall found, with kind and label, and the way from a root where it was walked to.

    Both are None where the node is not stored any more; the label of an erased one is empty.
    """

    node: RecalledNode
    kind: str | None
    label: str | None
    way: tuple[Step, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the node as JSON data."""
        node, reached = self.node, self.node.reached
        return {
            "node_id": node.node_id,
            "kind": self.kind,
            "label": self.label,
            "score": node.score,
            "legs": list(node.legs),
            "similarity": node.similarity,
            "hops": reached.hops if reached else None,
            "decay": reached.decay if reached else None,
            "cut": "max_nodes" if node.cut else None,
            "way": [
                {"node_id": s.node_id, "label": s.label, "predicate": s.predicate, "forward": s.forward}
                for s in self.way
            ],
        }


@dataclass(frozen=True, slots=True)
class RecalledPage:
    """Some of the nodes that a plan's recall found, best first from place `offset`.

    `legs` counts all of them; a node that came by several legs counts with each.
    """

    plan: PlanRef
    total: int
    offset: int
    legs: Mapping[str, int]
    nodes: tuple[NamedNode, ...]

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins, None at the end."""
        end = self.offset + len(self.nodes)
        return end if end < self.total else None

    def to_dict(self) -> dict[str, Any]:
        """Return the page as JSON data."""
        return {
            "plan": str(self.plan),
            "total": self.total,
            "legs": dict(self.legs),
            "nodes": [node.to_dict() for node in self.nodes],
            "next_offset": self.next_offset,
        }


@retried
def recalled(engine: Engine, ref: PlanRef, *, offset: int, limit: int) -> RecalledPage:
    """Return a page of the nodes that a plan's recall found. Raises UnknownPlan, RequestError."""
    check_page(offset, limit, MAX_PAGE)
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        as_of = read_as_of(conn, scope_id, ref)
        rows = run(conn, "plan_nodes", {"scope_id": scope_id, "plan_id": ref.plan_id}).fetchall()
        legs: dict[str, int] = {}
        for row in rows:
            for leg in row[1]:
                legs[leg] = legs.get(leg, 0) + 1
        nodes = [_node(row) for row in rows[offset : offset + limit]]
        named = _named(conn, {"scope_id": scope_id, "as_of": as_of}, nodes)
    return RecalledPage(ref, len(rows), offset, legs, named)


def _node(row: Sequence[Any]) -> RecalledNode:
    """Read a row of `plan_nodes`."""
    node_id, legs, score, similarity, hops, decay, path, cut = row
    reached = None if hops is None else Reached(hops, decay, tuple(path), similarity)
    return RecalledNode(node_id, score, tuple(legs), similarity, reached, cut is not None)


def _named(conn: Connection, at: Mapping[str, Any], nodes: Sequence[RecalledNode]) -> tuple[NamedNode, ...]:
    """Look up what the nodes and those on the ways to them are called, and the edges of the ways."""
    paths = [node.reached.path for node in nodes if node.reached]
    ids = sorted({node.node_id for node in nodes}.union(*paths))
    steps = sorted({step for path in paths for step in pairwise(path)})
    froms, tos = columns(steps, 2)
    names = {row[0]: row[1:] for row in run(conn, "node_names", {**at, "nodes": ids})}
    found = run(conn, "step_edges", {**at, "froms": froms, "tos": tos})
    edges = {steps[i - 1]: edge for i, *edge in found}

    def label(node_id: str) -> str | None:
        return names[node_id][1] if node_id in names else None

    def way(path: Sequence[str]) -> tuple[Step, ...]:
        walked = (Step(b, label(b), *edges.get((a, b), ())) for a, b in pairwise(path))
        return (Step(path[0], label(path[0])), *walked)

    def named(node: RecalledNode) -> NamedNode:
        kind, label = names.get(node.node_id, (None, None))
        return NamedNode(node, kind, label, way(node.reached.path) if node.reached else ())

    return tuple(map(named, nodes))
