"""Why a plan that is made again comes out otherwise: the classes of drift, each with the rows that show it.

Pure. A class is reported on direct evidence: a row of the trace that the store contradicts. What follows from
that (nodes that move up where another fell) is no evidence of its own; only where nothing is direct does a
changed set of nodes speak for itself, against the index where one was searched, else against the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from planner.errors import CounterError
from planner.trace.diff import Changed, differing
from planner.trace.findings import Findings
from planner.trace.record import Record
from planner.trace.replay import first_difference
from planner.types import PlanRef, RecalledNode, SpanRef, Verdict

MAX_EVIDENCE = 20
"""How many rows are listed as evidence of one class; how many there are is said."""

NodeRow = Sequence[Any]
"""A row of `plan_nodes`: node_id, legs, score, similarity, hops, decay, path, cut."""


class DriftClass(StrEnum):
    """What of a plan's ground has moved."""

    SOURCE = "source"
    GRAPH = "graph"
    EMBEDDING = "embedding"
    INDEX = "index"
    POLICY = "policy"
    TOKENIZER = "tokenizer"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Drift:
    """One class of drift, with the first of the `rows` that show it, in words."""

    drift: DriftClass
    evidence: tuple[str, ...]
    rows: int

    @classmethod
    def of(cls, drift: DriftClass, rows: Sequence[str]) -> Drift:
        """Return a drift whose evidence is the first of these rows."""
        return cls(drift, tuple(rows[:MAX_EVIDENCE]), len(rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the drift as JSON data."""
        return {"class": self.drift.value, "evidence": list(self.evidence), "rows": self.rows}


@dataclass(frozen=True, slots=True)
class NodeNow:
    """What the store holds today of a node as of the plan; `similarity` is to the question as it was then."""

    erased: bool
    similarity: float | None


@dataclass(frozen=True)
class Replanning:
    """A plan as it was recorded and as it came out again, with what the store says of what lies beneath.

    `span_faults` are by span of the recorded pool. `nodes_now` lacks the nodes that are not there any more.
    `question` says how the question's vectors differ, `unasked` why the recorded ones had to serve, `method`
    why the search could not be the same.
    """

    stored: Record
    stored_nodes: Sequence[NodeRow]
    again: Record
    again_nodes: Sequence[NodeRow]
    span_faults: Mapping[SpanRef, str]
    nodes_now: Mapping[str, NodeNow]
    question: str | None = None
    unasked: str | None = None
    method: str | None = None

    @property
    def identical(self) -> bool:
        """Whether both hashes are the same."""
        return self.stored.plan_hash == self.again.plan_hash and self.stored.pool_hash == self.again.pool_hash

    @cached_property
    def before(self) -> Mapping[str, NodeRow]:
        """The recorded nodes by id."""
        return {row[0]: row for row in self.stored_nodes}

    @cached_property
    def after(self) -> Mapping[str, NodeRow]:
        """The nodes that were found again, by id."""
        return {row[0]: row for row in self.again_nodes}

    @cached_property
    def both(self) -> tuple[tuple[NodeRow, NodeRow], ...]:
        """The nodes that were found both times."""
        return tuple((row, self.after[row[0]]) for row in self.stored_nodes if row[0] in self.after)

    @cached_property
    def same_roots(self) -> bool:
        """Whether expansion started from the same nodes."""
        before, after = (
            Findings.from_rows(record, rows).roots
            for record, rows in ((self.stored, self.stored_nodes), (self.again, self.again_nodes))
        )
        return before == after


@dataclass(frozen=True, slots=True)
class Replan:
    """The verdict: the same hashes, or what drifted. `notes` are differences that changed nothing.

    `policy` is among the drifts where today's settings would decide otherwise; both hashes are under the
    recorded ones. `again` is the new plan's reference where it was persisted.
    """

    plan: PlanRef
    as_of: int
    hashes: tuple[str | None, str | None]
    hashes_again: tuple[str | None, str | None]
    error: Mapping[str, Any] | None
    drifts: tuple[Drift, ...]
    notes: tuple[Drift, ...]
    changes: tuple[Changed, ...] = ()
    again: PlanRef | None = None

    @property
    def identical(self) -> bool:
        """Whether both hashes are the same under the recorded request and configuration."""
        return self.hashes == self.hashes_again

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON data."""
        (plan_hash, pool_hash), (plan_hash_again, pool_hash_again) = self.hashes, self.hashes_again
        return {
            "plan": str(self.plan),
            "as_of": self.as_of,
            "identical": self.identical,
            "plan_hash": plan_hash,
            "pool_hash": pool_hash,
            "plan_hash_again": plan_hash_again,
            "pool_hash_again": pool_hash_again,
            "error": dict(self.error) if self.error else None,
            "drifts": [drift.to_dict() for drift in self.drifts],
            "notes": [drift.to_dict() for drift in self.notes],
            "changes": [change.to_dict() for change in self.changes],
            "again": None if self.again is None else str(self.again),
        }


def node_rows(nodes: Sequence[RecalledNode]) -> list[NodeRow]:
    """Return nodes as `plan_nodes` reads them back."""
    return [
        (n.node_id, list(n.legs), n.score, n.similarity, *_walked(n), "max_nodes" if n.cut else None)
        for n in nodes
    ]


def drifts(found: Replanning) -> tuple[Drift, ...]:
    """Return what moved, by class; for an identical plan, what moved without changing it."""
    direct = {
        DriftClass.SOURCE: [f"{ref}: {fault}" for ref, fault in found.span_faults.items()],
        DriftClass.EMBEDDING: [*_said(found.question), *_vectors(found)],
        DriftClass.GRAPH: [*_gone(found), *_walks(found), *_provenance(found)],
    }
    explained = any(direct.values())
    moved = [] if explained or found.identical else [*_moved(found)]
    searched = "ann" in (found.stored.recall.get("method"), found.again.recall.get("method"))
    direct[DriftClass.INDEX] = [*_said(found.method), *(moved if searched else [])]
    direct[DriftClass.GRAPH] += [] if searched else moved
    direct[DriftClass.TOKENIZER] = [*_tokens(found)]
    if found.identical or not any(direct.values()):
        direct[DriftClass.CODE] = _code(found)
    direct[DriftClass.EMBEDDING] += _said(found.unasked)
    return tuple(Drift.of(kind, direct[kind]) for kind in DriftClass if direct.get(kind))


def _said(sentence: str | None) -> list[str]:
    return [] if sentence is None else [sentence]


def _vectors(found: Replanning) -> Iterator[str]:
    """Yield the nodes whose vector gives another similarity to the recorded question, or is gone."""
    for node_id, _, _, similarity, *_ in found.stored_nodes:
        now = found.nodes_now.get(node_id)
        if similarity is None or now is None or now.erased or now.similarity == similarity:
            continue
        is_now = "it has no vector" if now.similarity is None else f"is {now.similarity!r}"
        yield f"node {node_id}: similarity was {similarity!r}, {is_now}"


def _gone(found: Replanning) -> Iterator[str]:
    for row in found.stored_nodes:
        if row[0] not in found.nodes_now:
            yield f"node {row[0]}: was found by {', '.join(row[1])}, is not there as of {found.stored.as_of}"


def _walks(found: Replanning) -> Iterator[str]:
    """Yield what expansion reaches otherwise, or anew; from other roots that would be a consequence."""
    if not found.same_roots:
        return
    for old, new in found.both:
        was, now = _walk(old), _walk(new)
        if was != now:
            yield f"node {old[0]}: was reached {_told(was)}, is reached {_told(now)}"
    for node_id, row in found.after.items():
        if node_id not in found.before and list(row[1]) == ["expansion"]:
            yield f"node {node_id}: was not reached, is reached {_told(_walk(row))}"
    for node_id, row in found.before.items():
        still = found.nodes_now.get(node_id)
        left = node_id not in found.after and list(row[1]) == ["expansion"]
        if left and still is not None and not still.erased:
            yield f"node {node_id}: was reached {_told(_walk(row))}, is not"


def _provenance(found: Replanning) -> Iterator[str]:
    """Yield the spans that a node of one and the same score brought in only once."""
    if found.again.plan_hash is None:
        return
    before, after = _in_play(found.stored), _in_play(found.again)
    scores = {row[0]: (row[2], row[7]) for row in found.stored_nodes}
    kept = {row[0] for row in found.again_nodes if scores.get(row[0]) == (row[2], row[7])}
    for ref, verdict in _pool(found.stored).items():
        if ref not in after and ref not in found.span_faults and verdict.candidate.node_id in kept:
            yield f"node {verdict.candidate.node_id}: {ref} was among its provenance, is not"
    for ref, verdict in _pool(found.again).items():
        if ref not in before and verdict.candidate.node_id in kept:
            yield f"node {verdict.candidate.node_id}: {ref} was not among its provenance, is"


def _moved(found: Replanning) -> Iterator[str]:
    """Yield the nodes that only one of the two recalls found, or each by other legs."""
    for node_id, row in found.before.items():
        if node_id not in found.after:
            yield f"node {node_id}: was found by {', '.join(row[1])}, is not found"
    for node_id, row in found.after.items():
        if node_id not in found.before:
            yield f"node {node_id}: was not found, is found by {', '.join(row[1])}"
    for old, new in found.both:
        if list(old[1]) != list(new[1]):
            yield f"node {old[0]}: was found by {', '.join(old[1])}, is found by {', '.join(new[1])}"


def _tokens(found: Replanning) -> Iterator[str]:
    error = found.again.error
    if error is not None and error["code"] == CounterError.code:
        yield str(error["detail"])
    counter, again = found.stored.selection.budget.counter, _pool(found.again)
    for ref, verdict in _pool(found.stored).items():
        was, now = verdict.candidate, again[ref].candidate if ref in again else None
        if now is not None and was.tokens != now.tokens and was.text_hash == now.text_hash:
            yield f"{ref}: {counter} counted {was.tokens} tokens, counts {now.tokens}"


def _code(found: Replanning) -> list[str]:
    """Return the versions that differ and, where the hashes do, the first difference."""
    versions = differing(found.stored.versions, found.again.versions)
    rows = [f"{name} was {was}, is {now}" for name, (was, now) in versions.items()]
    if found.identical:
        return rows
    error = found.again.error
    same_pool = len(found.stored.selection.verdicts) == len(found.again.selection.verdicts)
    first = first_difference(found.stored.selection, found.again.selection) if same_pool else None
    return [
        *rows,
        first or (str(error["detail"]) if error else "nothing in the store explains the difference"),
    ]


def _walked(node: RecalledNode) -> tuple[Any, ...]:
    reached = node.reached
    return (None, None, None) if reached is None else (reached.hops, reached.decay, list(reached.path))


def _walk(row: NodeRow) -> tuple[Any, ...]:
    return (row[4], row[5], None if row[6] is None else tuple(row[6]))


def _told(walk: tuple[Any, ...]) -> str:
    hops, decay, path = walk
    return "by no path" if hops is None else f"by {' > '.join(path)} at decay {decay!r}"


def _pool(record: Record) -> dict[SpanRef, Verdict]:
    return {v.candidate.ref: v for v in record.selection.verdicts}


def _in_play(record: Record) -> set[SpanRef]:
    """Return the spans of the pool and those that a limit kept out of it."""
    cuts = {SpanRef.parse(ref) for items in record.cuts.values() for ref, _ in items}
    return cuts | {v.candidate.ref for v in record.selection.verdicts}
