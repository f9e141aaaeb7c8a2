"""A plan in the making: each stage adds what it found, so that a failure at any of them can be recorded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import Any
from uuid import UUID

from planner.engine import Engine, Stopwatch
from planner.errors import InsufficientEvidence, PlannerError
from planner.hashing import plan_hash, pool_hash, text_hash
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.rescore import rescored
from planner.ports import LedgerCounter, Rescorer, TokenCounter
from planner.recall.frame import Frame, read_state
from planner.recall.pool import Recalled, recall
from planner.recall.question import question_vectors
from planner.request import PlanRequest
from planner.selection.select import insufficient, select
from planner.store.connect import Connection
from planner.store.read import cached_counts, checked_text, slices
from planner.tokens import count_text
from planner.trace.plan_id import plan_id
from planner.trace.record import Record, policy_from
from planner.trace.scoring import traced
from planner.types import Budget, Candidate, PlanRef, Selection, SpanRef

RECORDED_SETTINGS = (
    "score_model",
    "kind_priors",
    "cache_discount",
    "max_frac_per_source",
    "dedup_overlap",
    "alpha",
    "hop_decay",
    "margin",
    "exact_limit",
    "max_budget",
)
"""The settings that a plan depends on beside its effective request; they are recorded with it."""


@dataclass
class Draft:
    """What is known of a plan so far."""

    engine: Engine
    request: PlanRequest
    counter: TokenCounter
    budget: Budget
    rescorer: Rescorer | None
    watch: Stopwatch
    ref: PlanRef = field(init=False)
    frame: Frame | None = None
    recalled: Recalled | None = None
    candidates: tuple[Candidate, ...] = ()
    selection: Selection | None = None
    texts: dict[SpanRef, str] = field(default_factory=dict)
    fresh_counts: dict[bytes, int] = field(default_factory=dict)
    error: PlannerError | None = None

    def __post_init__(self) -> None:
        """Take an id of the current time: ids are ordered by it."""
        self.created_at = self.engine.clock()
        self.ref = PlanRef(self.request.scope, str(plan_id(self.created_at, os.urandom(10))))
        self.scope_id: UUID = id_of_scope(self.request.scope)
        values = self.engine.settings.to_dict()
        self.config: dict[str, Any] = {name: values[name] for name in RECORDED_SETTINGS}
        self.policy = policy_from(self.config, self.request.plan_model or self.engine.settings.plan_model)

    @property
    def score_model(self) -> str:
        """The name under which the scores are hashed."""
        return f"caller:{self.rescorer.name}" if self.rescorer else self.engine.settings.score_model

    def look(self, conn: Connection) -> None:
        """Read the scope's state and embed the question."""
        with self.watch("scope"):
            state = read_state(conn, self.request.scope, self.scope_id, self.request.as_of)
        with self.watch("embed"):
            queries = question_vectors(self.request, self.engine.embedder, state.model)
        self.request = self.request.model_copy(update={"as_of": state.as_of})
        self.frame = Frame(state, self.request, self.engine.settings, queries)

    def recall(self, conn: Connection) -> None:
        """Run Phase A."""
        assert self.frame is not None
        with self.watch("recall"):
            self.recalled = recall(conn, self.frame, self.counter)
            self.candidates = self.recalled.candidates
        if self.rescorer is not None:
            with self.watch("rescore"):
                texts = self._read(conn, [c for c in self.candidates if c.sliceable])
                self.candidates = rescored(self.rescorer, self.request.text or "", self.candidates, texts)

    def count(self, conn: Connection) -> None:
        """Count the tokens of candidates whose text the counter must read."""
        assert self.recalled is not None
        if not self.recalled.uncounted:
            return
        with self.watch("count"):
            counted = list(self.candidates)
            for i, candidate in zip(self.recalled.uncounted, self._counted(conn), strict=True):
                counted[i] = candidate
            self.candidates = tuple(counted)

    def decide(self, conn: Connection) -> None:
        """Run Phase B and read what it selects; what cannot be cut out is dropped, and it runs again."""
        assert self.recalled is not None
        while True:
            with self.watch("select"):
                self.selection = select(
                    self.candidates,
                    self.policy,
                    self.budget,
                    kind_missing=self.recalled.kind_missing,
                    merged=self.recalled.merged,
                )
            with self.watch("text"):
                broken = self._read_selected(conn, self.selection)
            if not broken:
                break
            self.candidates = tuple(
                replace(c, sliceable=False) if c.ref in broken else c for c in self.candidates
            )
        lacking = insufficient(self.selection)
        if lacking is not None and not self.request.allow_ungrounded:
            raise lacking

    def failed(self, error: PlannerError) -> None:
        """Keep the error, and let it name the trace."""
        self.error = error
        if self.engine.settings.trace == "sync":
            error.detail["plan"] = str(self.ref)
            if isinstance(error, InsufficientEvidence):
                error.plan = str(self.ref)

    def record(self) -> Record:
        """Return everything that is known of the plan."""
        refused = isinstance(self.error, InsufficientEvidence)
        decided = self.selection if self.error is None or refused else None
        selection = decided or select((), self.policy, self.budget)
        models = {"plan_model": self.policy.plan_model, "score_model": self.score_model}
        recalled, server = self.recalled, self.engine.store.server
        weighed = recalled.stats.get("weights") if recalled else None
        return Record(
            ref=self.ref,
            created_at=self.created_at,
            outcome="planned" if self.error is None else "refused" if refused else "failed",
            error=self.error.to_dict() if self.error else None,
            plan_hash=plan_hash(selection, **models) if decided else None,
            pool_hash=pool_hash(selection, **models) if decided else None,
            score_model=self.score_model,
            as_of=self.frame.state.as_of if self.frame else 0,
            request=self.request.to_dict(),
            policy=self.policy,
            config=self.config,
            query_vectors=self.frame.queries.tolist() if self.frame else [],
            selection=selection,
            recall=traced(recalled.stats) if recalled else {},
            cuts=recalled.cut_spans if recalled else {},
            timings=self.watch.timings,
            versions={
                "planner": own_version(),
                "postgresql": server.server_version,
                "pgvector": server.vector_version,
                **({"score_weights": weighed} if weighed else {}),
            },
            nodes=recalled.nodes if recalled else (),
            fresh_counts=self.fresh_counts,
        )

    def _counted(self, conn: Connection) -> list[Candidate]:
        """Return the uncounted candidates with their tokens, from the cache or from their texts."""
        assert self.recalled is not None
        waiting = [self.candidates[i] for i in self.recalled.uncounted]
        cached = (
            {}
            if isinstance(self.counter, LedgerCounter)
            else cached_counts(conn, self.scope_id, self.counter.name, [c.text_hash for c in waiting])
        )
        unknown = [c for c in waiting if c.text_hash not in cached]
        texts = self._read(conn, unknown)
        out = []
        for candidate in waiting:
            text = texts.get(candidate.ref)
            if candidate.text_hash in cached:
                out.append(replace(candidate, tokens=cached[candidate.text_hash]))
            elif text is None:
                out.append(replace(candidate, sliceable=False))
            else:
                hashed, tokens = text_hash(text.encode()), count_text(self.counter, text)
                if not isinstance(self.counter, LedgerCounter):
                    self.fresh_counts[hashed] = tokens
                out.append(replace(candidate, tokens=tokens, text_hash=hashed))
        return out

    def _read_selected(self, conn: Connection, selection: Selection) -> set[SpanRef]:
        """Read the texts of the selected spans; return those that cannot be cut out."""
        chosen = [v.candidate for v in selection.selected]
        self.texts |= self._read(conn, [c for c in chosen if c.ref not in self.texts])
        broken = {c.ref for c in chosen if c.ref not in self.texts}
        self.texts = {c.ref: self.texts[c.ref] for c in chosen if c.ref in self.texts}
        return broken

    def _read(self, conn: Connection, candidates: Sequence[Candidate]) -> dict[SpanRef, str]:
        """Read slices, checked against the ledger's hash. Raises IntegrityError."""
        refs = [c.ref for c in candidates]
        found = slices(conn, self.scope_id, refs)
        texts = {
            c.ref: checked_text(c.ref, data, c.text_hash) for c, data in zip(candidates, found, strict=True)
        }
        return {ref: text for ref, text in texts.items() if text is not None}


@cache
def own_version() -> str:
    """Return the installed version, read from the package's metadata once."""
    return version("evidence-planner")
