"""The questions that `why` puts to the store, all as of the plan and inside its scope; one statement each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Literal
from uuid import UUID

import numpy as np
from psycopg.rows import TupleRow

from planner.engine import Engine
from planner.errors import RequestError
from planner.recall.expansion import edges
from planner.recall.frame import Frame, read_state
from planner.recall.score import similarities
from planner.recall.semantic import restriction, vectors_of
from planner.request import PlanRequest
from planner.store.connect import Connection, run, streamed
from planner.store.queries import compose
from planner.trace.explain import ranks
from planner.trace.findings import Findings
from planner.trace.phrase import caseless_ranges, exact_ranges
from planner.trace.why import Carrier, Missed, Ranked, Target
from planner.types import OPEN_TX, SpanRef

BATCH = 2_048
"""Vectors compared at once, so that a large scope needs no large memory."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What was meant: spans, or a node without any. `total` counts what a phrase is in beyond `refs` too."""

    resolved_as: Literal["span", "node", "source", "phrase"] | None
    refs: tuple[SpanRef, ...] = ()
    total: int = 0
    node_id: str | None = None
    asked: SpanRef | None = None


@dataclass(frozen=True)
class Inquiry:
    """One plan being asked about, on a connection whose snapshot lasts for the whole answer."""

    conn: Connection
    engine: Engine
    scope_id: UUID
    found: Findings

    @cached_property
    def frame(self) -> Frame:
        """The plan's recall as it was asked: its filters, its question, the scope's model at its as_of."""
        request = PlanRequest.parse(self.found.request)
        state = read_state(self.conn, request.scope, self.scope_id, self.found.record.as_of)
        return Frame(state, request, self.engine.settings, self.found.queries)

    def resolve(self, what: str, limit: int) -> Subject:
        """Return what `what` means: a span, else a node, else a source, else spans that a phrase is in."""
        ref = _span_ref(what)
        key = _key(ref) if ref else dict.fromkeys(("source_id", "version_tx", "start", "end"))
        row = run(self.conn, "explain_named", {**self._params(what), **key}).fetchone()
        is_span, is_node, is_source = row or (False, False, False)
        # What a plan selected is known of its trace, also where the version was pruned since.
        if ref is not None and (is_span or ref in self.found.verdicts):
            rows = run(self.conn, "explain_span", {**self._params(what), **key}).fetchall()
            stands_for_it = SpanRef(*rows[0]) if rows else ref
            return Subject("span", (stands_for_it,), 1, asked=None if stands_for_it == ref else ref)
        if is_node:
            refs = self._refs(run(self.conn, "explain_node", self._params(what)).fetchall())
            return Subject("node", refs, len(refs) or 1, node_id=None if refs else what)
        if is_source:
            refs = self._refs(run(self.conn, "explain_source", self._params(what)).fetchall())
            return Subject("source", refs, len(refs))
        refs = self._holding(what)
        return Subject("phrase" if refs else None, refs[:limit], len(refs))

    def targets(self, subject: Subject) -> tuple[Target, ...]:
        """Return the subject's spans, or its node, each with the nodes that carry it."""
        refs = subject.refs
        params = {
            **self.frame.params,
            "sources": [ref.source_id for ref in refs],
            "versions": [ref.version_tx for ref in refs],
            "starts": [ref.start for ref in refs],
            "ends": [ref.end for ref in refs],
            "node_id": subject.node_id,
        }
        fragments = {
            "must": self.frame.must,
            "restriction": self.frame.restriction,
            "match": self.frame.match,
        }
        carriers: dict[int, list[Carrier]] = {}
        for i, *row in run(self.conn, compose("explain_carriers", **fragments), params):
            carriers.setdefault(i, []).append(Carrier(*row))
        if subject.node_id is not None:
            return (Target(None, subject.node_id, carriers=tuple(carriers[0])),)
        rows = run(self.conn, "explain_versions", params).fetchall()
        versions = {(source_id, tx): (erased_tx, newest) for source_id, tx, erased_tx, newest in rows}
        return tuple(
            Target(
                ref,
                None,
                subject.asked,
                tuple(carriers.get(i, ())),
                *versions.get((ref.source_id, ref.version_tx), (None, None)),
            )
            for i, ref in enumerate(refs, start=1)
        )

    def missed(self, node_ids: frozenset[str]) -> Missed:
        """Return where these nodes rank, and by which paths they could have been reached."""
        if not node_ids:
            return Missed()
        ranked = self._ranks(node_ids) if self.found.is_semantic else {}
        return Missed(ranked, self._paths(node_ids) if self.found.request["hops"] else {})

    def _ranks(self, node_ids: frozenset[str]) -> dict[str, Ranked]:
        model = self.frame.state.model
        if model is None:
            return {}
        statement = compose("explain_universe", restriction=restriction(self.frame))
        rows = streamed(self.conn, statement, self.frame.params)
        ids: list[str] = []
        found = [np.zeros(0)]
        while batch := list(islice(rows, BATCH)):
            ids += [node_id for node_id, _ in batch]
            vectors = vectors_of([vector for _, vector in batch], model.dimensions)
            found.append(similarities(vectors, self.found.queries))
        return ranks(ids, np.concatenate(found), node_ids)

    def _paths(self, node_ids: frozenset[str]) -> dict[tuple[str, bool], Sequence[str]]:
        roots = set(self.found.roots)
        params = {
            **self.frame.params,
            "found": list(self.found.first),
            "is_root": [node in roots for node in self.found.first],
            "nodes": sorted(node_ids),
            "hops": self.found.request["hops"],
            "fanout": None,
        }
        rows = run(self.conn, compose("explain_reach", edges=edges(self.frame)), params).fetchall()
        return {(node_id, is_root): path for node_id, is_root, path in rows}

    def _holding(self, phrase: str) -> tuple[SpanRef, ...]:
        """Return the spans that a phrase is in or touches: the plan's pool first, then the newest."""
        refs = [
            SpanRef(source_id, tx, *span)
            for source_id, tx, body, spans in self._texts(phrase.encode())
            for span in exact_ranges(body, phrase, spans)
        ]
        if not refs:
            refs = [
                SpanRef(source_id, tx, *span)
                for source_id, tx, body, spans in self._texts(None)
                for span in caseless_ranges(body, phrase, spans)
            ]
        rank, last = self.found.pool_rank, len(self.found.verdicts)
        return tuple(sorted(refs, key=lambda ref: (rank.get(ref, last), -ref.version_tx, ref)))

    def _texts(self, needle: bytes | None) -> Iterator[tuple[str, int, bytes, list[tuple[int, int]]]]:
        params = {**self._params(""), "needle": needle}
        for source_id, tx, body, starts, ends in streamed(self.conn, "explain_texts", params):
            yield source_id, tx, body, list(zip(starts, ends, strict=True))

    def _params(self, name: str) -> dict[str, Any]:
        return {"scope_id": self.scope_id, "as_of": self.found.record.as_of, "name": name}

    @staticmethod
    def _refs(rows: Sequence[TupleRow]) -> tuple[SpanRef, ...]:
        return tuple(SpanRef(*row) for row in rows if row[0] is not None)


def _span_ref(what: str) -> SpanRef | None:
    """Return `what` as a span reference; None where it is not one, or beyond what a ledger can number."""
    try:
        ref = SpanRef.parse(what)
    except RequestError:
        return None
    return ref if max(ref.version_tx, ref.start, ref.end) <= OPEN_TX else None


def _key(ref: SpanRef) -> dict[str, Any]:
    return {"source_id": ref.source_id, "version_tx": ref.version_tx, "start": ref.start, "end": ref.end}
