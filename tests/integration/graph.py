"""Graphs for the tests, written through the open JSONL import (docs/jsonl-import.md).

Vectors lie on the unit circle: a node's angle in degrees to the question's decides how similar it is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import psycopg
from psycopg.rows import TupleRow, dict_row

from planner import EvidencePlan, Planner
from planner.embedders import CallableEmbedder
from planner.ingest import scope_id
from planner.ingest.media import IMPORT
from planner.types import IngestReport

Connection = psycopg.Connection[TupleRow]

V1: Mapping[str, Any] = {"score_model": "v1", "plan_model": "v1"}
"""Settings for the graphs of this module: their scores are worked out from angles, hops and density."""

MODEL = "circle"
QUESTION = [1.0, 0.0]
"""The direction of 0 degrees, as an embedding."""

_ANGLE = re.compile(r"at (-?[0-9][0-9.]*)\s*$")

_scopes = count()


def fresh_scope(prefix: str = "s") -> str:
    """Return a scope's name that no other test uses."""
    return f"{prefix}-{next(_scopes)}"


def at(degrees: float) -> list[float]:
    """Return the unit vector of an angle."""
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def circle(texts: list[str]) -> np.ndarray[Any, Any]:
    """Embed texts that end in an angle, as `at 30`; a text without one is at 0."""
    ends = [_ANGLE.search(text) for text in texts]
    return np.array([at(float(end[1]) if end else 0.0) for end in ends])


def circle_embedder() -> CallableEmbedder:
    """Return the embedder whose vectors the graphs of this module bring themselves."""
    return CallableEmbedder(MODEL, 2, circle)


@dataclass
class Graph:
    """Collects the records of one import file."""

    lines: list[dict[str, Any]] = field(default_factory=list)

    def source(
        self,
        source_id: str,
        text: str,
        spans: Sequence[tuple[int, int]] = (),
        kind: str = "paragraph",
        **more: Any,
    ) -> Graph:
        """Add a source with the given spans, all of one kind."""
        self.lines.append({"record": "source", "source_id": source_id, "text": text, **more})
        for start, end in spans:
            self.lines.append(
                {"record": "span", "source_id": source_id, "start": start, "end": end, "kind": kind}
            )
        return self

    def node(
        self,
        node_id: str,
        angle: float | None = None,
        *,
        text: str | None = None,
        spans: Sequence[tuple[str, int, int]] = (),
        source: dict[str, Any] | None = None,
        **fields: Any,
    ) -> Graph:
        """Add a node; `text` gives it a source of its own, `<node_id>.txt`, described by `source`."""
        cited = [{"source_id": s, "start": a, "end": b} for s, a, b in spans]
        if text is not None:
            end = len(text.encode())
            self.source(f"{node_id}.txt", text, [(0, end)], **(source or {}))
            cited.append({"source_id": f"{node_id}.txt", "start": 0, "end": end})
        self.lines.append({"record": "node", "node_id": node_id, "kind": "fact", "spans": cited, **fields})
        return self if angle is None else self.vector(node_id, at(angle))

    def vector(self, node_id: str, vector: Sequence[float]) -> Graph:
        """Add a node's vector."""
        self.lines.append({"record": "embedding", "node_id": node_id, "model": MODEL, "vector": list(vector)})
        return self

    def edge(
        self, src: str, dst: str, confidence: float = 1.0, predicate: str = "knows", **fields: Any
    ) -> Graph:
        """Add an edge."""
        record = {"record": "edge", "src": src, "dst": dst, "predicate": predicate, "confidence": confidence}
        self.lines.append({**record, **fields})
        return self

    def into(self, planner: Planner, scope: str) -> IngestReport:
        """Write the graph as one transaction."""
        text = "\n".join(json.dumps(line) for line in self.lines)
        return planner.ingest_text(scope, "graph.jsonl", text, media_type=IMPORT)


def fan(*angles: float) -> Graph:
    """Return a graph of nodes `n0`, `n1` …, each with a text of its own at one of the angles."""
    graph = Graph()
    for i, angle in enumerate(angles):
        graph.node(f"n{i}", angle, text=f"Fact number {i}.")
    return graph


def ask(planner: Planner, scope: str, **fields: Any) -> EvidencePlan:
    """Plan for the direction of 0 degrees unless `fields` ask something else; an empty plan is a plan."""
    asked = fields.keys() & {"text", "parts", "embedding", "match", "seeds"}
    question = {} if asked else {"embedding": QUESTION}
    return planner.plan(scope, **{"allow_ungrounded": True, **question, **fields})


def nodes_of(conn: Connection, plan: EvidencePlan) -> dict[str, dict[str, Any]]:
    """Return what the trace keeps of the nodes that recall found, by id."""
    with conn.cursor(row_factory=dict_row) as cursor:
        cursor.execute(
            "SELECT node_id, legs, score, similarity, hops, decay, path, cut FROM planner.plan_node"
            " WHERE scope_id = %s AND plan_id = %s",
            (scope_id(plan.ref.scope), plan.plan_id),
        )
        return {row.pop("node_id"): row for row in cursor}


def scores_of(plan: EvidencePlan) -> dict[str, float]:
    """Return the score of every candidate of a plan, by reference."""
    return {str(s.verdict.candidate.ref): s.verdict.candidate.score for s in (*plan.spans, *plan.rejected)}


def rows_of(conn: Connection, scope: str) -> dict[str, int]:
    """Return how many rows each tenant table holds of a scope."""
    tables = conn.execute(
        "SELECT c.relname FROM pg_class c"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'scope_id'"
        " WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind = 'r'"
    ).fetchall()
    counted = {}
    for (table,) in tables:
        query = psycopg.sql.SQL("SELECT count(*) FROM planner.{} WHERE scope_id = %s")
        row = conn.execute(query.format(psycopg.sql.Identifier(table)), (scope_id(scope),)).fetchone()
        counted[table] = row[0] if row else 0
    return counted
