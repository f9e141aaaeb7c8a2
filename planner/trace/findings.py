"""What the trace of one plan says it found, by span and by node, and where its expansion started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from planner.ports import Vectors
from planner.recall.score import MATCHED, NO_DECAY, fuse
from planner.trace.delivery import DeliveryRecord
from planner.trace.record import Record
from planner.types import SpanRef, Verdict, evidence_id, ranked


@dataclass(frozen=True, slots=True)
class FoundNode:
    """A node that recall found; `position` counts from 1 by (S desc, node_id), `cut` is by `max_nodes`."""

    node_id: str
    legs: frozenset[str]
    score: float
    similarity: float | None
    cut: bool
    position: int


@dataclass(frozen=True)
class Findings:
    """One recorded plan with its nodes, best first."""

    record: Record
    ranked: tuple[FoundNode, ...]
    deliveries: tuple[DeliveryRecord, ...] = ()

    @classmethod
    def from_rows(
        cls, record: Record, rows: Sequence[Sequence[Any]], deliveries: tuple[DeliveryRecord, ...] = ()
    ) -> Findings:
        """Read the rows of `plan_nodes`; `deliveries` are what was delivered of the plan since."""
        nodes = (
            FoundNode(node_id, frozenset(legs), score, similarity, cut is not None, position)
            for position, (node_id, legs, score, similarity, _, _, _, cut) in enumerate(rows, start=1)
        )
        return cls(record, tuple(nodes), deliveries)

    @property
    def request(self) -> Mapping[str, Any]:
        """The effective request, as JSON data."""
        return self.record.request

    @cached_property
    def nodes(self) -> Mapping[str, FoundNode]:
        """The nodes by id."""
        return {node.node_id: node for node in self.ranked}

    @cached_property
    def verdicts(self) -> Mapping[SpanRef, Verdict]:
        """The pool by span."""
        return {v.candidate.ref: v for v in self.record.selection.verdicts}

    @cached_property
    def stale(self) -> frozenset[SpanRef]:
        """The spans of the pool that are derived text which no longer held as of the plan."""
        return frozenset(map(SpanRef.parse, self.record.recall.get("stale", ())))

    @cached_property
    def evidence(self) -> Mapping[SpanRef, str]:
        """The names by which the selected spans are delivered and cited."""
        best_first = ranked(self.record.to_plan({}))
        return {span.verdict.candidate.ref: evidence_id(rank) for rank, span in enumerate(best_first, 1)}

    @cached_property
    def pool_rank(self) -> Mapping[SpanRef, int]:
        """The positions of the pool's spans, in rank order from 0."""
        return {ref: rank for rank, ref in enumerate(self.verdicts)}

    @cached_property
    def cuts(self) -> Mapping[SpanRef, tuple[str, float]]:
        """The spans that a limit kept out of the pool: the limit's name and the span's score."""
        return {
            SpanRef.parse(ref): (name, score)
            for name, items in self.record.cuts.items()
            for ref, score in items
        }

    @property
    def queries(self) -> Vectors:
        """The question's vectors, shape (m, d)."""
        return np.array(self.record.query_vectors, dtype=np.float32)

    @property
    def is_semantic(self) -> bool:
        """Whether the plan had a semantic leg at all."""
        return len(self.record.query_vectors) > 0

    @cached_property
    def first(self) -> tuple[str, ...]:
        """The nodes of the legs that start from the request itself, in the order in which roots are taken."""
        scores = {
            node.node_id: self._first_score(node)
            for node in self.ranked
            if node.legs & {"structured", "semantic"}
        }
        return tuple(sorted(scores, key=lambda node: (-scores[node], node)))

    @property
    def roots(self) -> tuple[str, ...]:
        """The nodes that expansion started from."""
        return self.first[: self.request["roots"]]

    def _first_score(self, node: FoundNode) -> float:
        """Return the larger score of the two first legs.

        The trace does not say whether a seed satisfied `match` as well. If it did, its S is 1.0.
        """
        scores = []
        if "semantic" in node.legs and node.similarity is not None:
            scores.append(fuse(node.similarity, NO_DECAY, self.record.config["alpha"]))
        if "structured" in node.legs:
            own = self._seeds.get(node.node_id)
            matched = own is None or (self.request["match"] is not None and node.score >= MATCHED)
            scores.append(MATCHED if matched or own is None else own)
        return max(scores)

    @cached_property
    def _seeds(self) -> Mapping[str, float]:
        best: dict[str, float] = {}
        for seed in self.request["seeds"]:
            best[seed["node_id"]] = max(seed["score"], best.get(seed["node_id"], 0.0))
        return best
