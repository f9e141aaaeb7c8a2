"""Replanning, top to bottom: the plan on record, its ground as of then, both phases again, the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np

from planner.engine import Engine, Stopwatch
from planner.errors import (
    CounterError,
    EmbedderError,
    InsufficientEvidence,
    IntegrityError,
    RequestError,
)
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.draft import Draft
from planner.pipeline.explain import read_record
from planner.pipeline.plan import asked, persist
from planner.pipeline.verify import read_beneath
from planner.ports import Rescorer, Vectors
from planner.recall.frame import Frame, Method, ScopeState, read_state
from planner.recall.question import question_vectors
from planner.recall.score import similarities
from planner.recall.semantic import vectors_of
from planner.request import PlanRequest
from planner.settings import Settings
from planner.store.connect import Connection, run
from planner.store.retry import retried
from planner.tokens import counter as counter_named
from planner.trace.diff import changes, differing
from planner.trace.drift import Drift, DriftClass, NodeNow, Replan, Replanning, drifts, node_rows
from planner.trace.record import Record
from planner.trace.verify import hash_faults, span_fault
from planner.types import Budget, Outcome, PlanRef, SpanRef

CALLER = "caller:"
"""How the score model of a plan begins whose pool a caller's rescorer weighed."""


def replan(engine: Engine, ref: PlanRef, rescorer: Rescorer | None = None, *, keep: bool = False) -> Replan:
    """Run both phases again as of a stored plan, with its request and its recorded configuration.

    Gives the same hashes, or the classes of drift. Nothing is written unless `keep`, which persists the new
    plan like any other. Raises UnknownPlan, UnknownCounter, StoreError; RequestError for a plan that cannot
    be asked again (it failed, or its scores were a caller's); IntegrityError where the trace was changed.
    """
    draft, found, policy = _made_again(engine, ref, rescorer)
    if keep:
        persist(engine, draft, found.again)
    record, observed, steady = found.stored, drifts(found), found.identical
    return Replan(
        plan=ref,
        as_of=record.as_of,
        hashes=(record.plan_hash, record.pool_hash),
        hashes_again=(found.again.plan_hash, found.again.pool_hash),
        error=None if steady else found.again.error,
        drifts=(*(() if steady else observed), *(drift for drift, matters in policy if matters)),
        notes=(*(observed if steady else ()), *(drift for drift, matters in policy if not matters)),
        changes=() if steady else changes(record, found.again),
        again=draft.ref if keep else None,
    )


@retried
def _made_again(
    engine: Engine, ref: PlanRef, rescorer: Rescorer | None
) -> tuple[Draft, Replanning, list[tuple[Drift, bool]]]:
    """Return the plan made again, beside what there was, and what today's policy would make of it."""
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        record = read_record(conn, scope_id, ref)
        _check(record, rescorer)
        again = _Again.of(engine, conn, record, rescorer)
        draft = again.draft(again.recorded, again.request, record.selection.budget)
        found = again.replanning(draft)
        return draft, found, again.policy(found.again)


@dataclass(frozen=True)
class _Again:
    """The ground of a recorded plan as of its transaction, on a connection whose snapshot lasts."""

    engine: Engine
    conn: Connection
    scope_id: UUID
    stored: Record
    rescorer: Rescorer | None
    state: ScopeState
    request: PlanRequest
    queries: Vectors
    question: str | None
    unasked: str | None
    unsearched: str | None

    @classmethod
    def of(cls, engine: Engine, conn: Connection, stored: Record, rescorer: Rescorer | None) -> _Again:
        scope_id = id_of_scope(stored.ref.scope)
        state = read_state(conn, stored.ref.scope, scope_id, stored.as_of)
        method, unsearched = _method(stored, state)
        request = PlanRequest.parse(stored.request).model_copy(update={"method": method})
        queries, question, unasked = _question(engine, stored, request, state)
        ground = (state, request, queries, question, unasked, unsearched)
        return cls(engine, conn, scope_id, stored, rescorer, *ground)

    @property
    def config(self) -> Mapping[str, Any]:
        """The recorded settings; before there was a choice, the score model was v1."""
        return {"score_model": "v1", **self.stored.config}

    @property
    def recorded(self) -> Settings:
        """The settings of the plan; today's where they were not recorded."""
        known = {k: v for k, v in self.config.items() if k in Settings.model_fields}
        return self.engine.settings.model_copy(update=known)

    def draft(self, settings: Settings, request: PlanRequest, budget: Budget) -> Draft:
        """Run both phases; what a plan may fail of is kept in the draft."""
        counter = counter_named(budget.counter, self.engine.counters)
        engine = replace(self.engine, settings=settings)
        draft = Draft(engine, request, counter, budget, self.rescorer, Stopwatch())
        draft.frame = Frame(self.state, request, settings, self.queries)
        try:
            draft.recall(self.conn)
            draft.count(self.conn)
            draft.decide(self.conn)
        except (InsufficientEvidence, IntegrityError, CounterError) as error:
            draft.error = error
        return draft

    def replanning(self, draft: Draft) -> Replanning:
        """Return the plan made again beside the recorded one, and what the store says of the rows of that."""
        params = {"scope_id": self.scope_id, "plan_id": UUID(self.stored.ref.plan_id)}
        nodes = run(self.conn, "plan_nodes", params).fetchall()
        return Replanning(
            stored=self.stored,
            stored_nodes=nodes,
            again=draft.record(),
            again_nodes=node_rows(draft.recalled.nodes if draft.recalled else ()),
            span_faults=self._span_faults(),
            nodes_now=self._nodes_now(nodes),
            question=self.question,
            unasked=self.unasked,
            method=self.unsearched,
        )

    def policy(self, again: Record) -> list[tuple[Drift, bool]]:
        """Return how today's settings differ from the recorded, and whether they would decide otherwise."""
        rows: list[str] = []
        try:
            settings = self.request.within(self.engine.settings)
            values = settings.to_dict()
            differences = differing(self.config, {k: values.get(k) for k in self.config})
            rows = [f"{name} was {was!r}, is {now!r}" for name, (was, now) in differences.items()]
            request, _, budget = asked(self.engine, self.request)
            if budget != self.stored.selection.budget and not rows:
                rows = [f"the budget was {self.stored.selection.budget.budget}, would be {budget.budget}"]
            if not rows:
                return []
            today = self.draft(settings, request, budget).record()
        except RequestError as error:
            return [(Drift.of(DriftClass.POLICY, [*rows, f"today the request is refused: {error}"]), True)]
        if (today.plan_hash, today.pool_hash) == (again.plan_hash, again.pool_hash):
            return [(Drift.of(DriftClass.POLICY, rows), False)]
        moved = changes(again, today)
        counted = {kind: sum(c.change == kind for c in moved) for kind in ("entered", "left", "moved")}
        would = ", ".join(f"{count} {kind}" for kind, count in counted.items())
        used = f"{today.selection.used} tokens used"
        said = f"today it would be plan_hash {today.plan_hash}: spans {would}; {used}"
        return [(Drift.of(DriftClass.POLICY, [*rows, said]), True)]

    def _span_faults(self) -> dict[SpanRef, str]:
        verdicts = self.stored.selection.verdicts
        pool = [v.candidate for v in verdicts]
        faults: dict[SpanRef, str] = {}
        for verdict, found in zip(verdicts, read_beneath(self.conn, self.scope_id, pool), strict=True):
            was_read = verdict.outcome is not Outcome.UNSLICEABLE
            fault = span_fault(verdict.candidate, found, was_read=was_read)
            if found.erased_tx is not None and was_read:
                fault = f"its text was erased by transaction {found.erased_tx}"
            if fault is not None:
                faults[verdict.candidate.ref] = fault
        return faults

    def _nodes_now(self, nodes: list[tuple[object, ...]]) -> Mapping[str, NodeNow]:
        model = self.state.model
        params = {
            "scope_id": self.scope_id,
            "as_of": self.stored.as_of,
            "model_id": model.model_id if model else None,
            "nodes": [row[0] for row in nodes],
        }
        then = _recorded_vectors(self.stored)
        now: dict[str, NodeNow] = {}
        for node_id, erased, raw in run(self.conn, "nodes_as_of", params):
            comparable = raw is not None and model is not None and then.shape[1:] == (model.dimensions,)
            vector = vectors_of([raw], model.dimensions) if comparable and model is not None else None
            similarity = None if vector is None else float(similarities(vector, then)[0])
            now[node_id] = NodeNow(erased, similarity)
        return now


def _check(record: Record, rescorer: Rescorer | None) -> None:
    """Refuse what cannot be asked again, and a trace that is not as it was written."""
    if record.plan_hash is None:
        raise RequestError(f"{record.ref} failed before it had a pool; there is nothing to compare with")
    mine = f"{CALLER}{rescorer.name}" if rescorer else None
    if mine != (record.score_model if record.score_model.startswith(CALLER) else None):
        raise RequestError(
            f"the scores of {record.ref} are of {record.score_model}, not of {mine or 'the planner'}; "
            "give the rescorer that the plan was made with, and none where there was none",
            field="rescore",
        )
    for fault in hash_faults(record):
        raise IntegrityError(
            f"the trace of {record.ref} was changed ({fault}); `planner verify plan` says more",
            plan=str(record.ref),
        )


def _method(stored: Record, state: ScopeState) -> tuple[Method, str | None]:
    """Return how to search: as the plan did, or exactly where its index cannot serve, and then why."""
    if stored.recall["method"] != "ann":
        return "exact", None
    if not state.newest:
        why = f"an index serves the newest transaction only, {state.last_tx}"
    elif not state.indexed:
        why = "the scope has no valid vector index any more"
    else:
        return "ann", None
    return "exact", f"method was ann as of {stored.as_of}, is exact: {why}"


def _question(
    engine: Engine, stored: Record, request: PlanRequest, state: ScopeState
) -> tuple[Vectors, str | None, str | None]:
    """Return the question's vectors, how they differ from the recorded ones, or why these had to serve."""
    then = _recorded_vectors(stored)
    try:
        now = question_vectors(request, engine.embedder, state.model)
    except (EmbedderError, RequestError) as error:
        return then, None, f"the question cannot be embedded as it was, the recorded vectors serve: {error}"
    if len(then) == len(now) and (not len(then) or np.array_equal(then, now)):
        return now, None, None
    return now, f"the question's vectors were {_described(then)}, are {_described(now)}", None


def _recorded_vectors(stored: Record) -> Vectors:
    found = stored.query_vectors
    return np.array(found, dtype=np.float32) if found else np.zeros((0, 1), dtype=np.float32)


def _described(vectors: Vectors) -> str:
    head = ", ".join(f"{x:.6f}" for x in vectors[0, :3].tolist()) if len(vectors) else ""
    return f"{len(vectors)} of {vectors.shape[1]} dimensions ({head}, …)" if head else "none"
