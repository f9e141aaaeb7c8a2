"""What the legs of one plan share: the scope's state at one snapshot, the request, the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from uuid import UUID

import numpy as np
import numpy.typing as npt
from psycopg import sql

from planner.errors import RequestError, UnknownScope
from planner.recall.filters import TRUE, Compiler
from planner.request import PlanRequest
from planner.settings import Settings
from planner.store.connect import Connection, run

Vectors = npt.NDArray[np.float32]
Method = Literal["exact", "ann"]

MAX_VECTOR_INDEX, MAX_HALFVEC_INDEX = 2_000, 4_000
"""Dimensions that pgvector can index as `vector` and as `halfvec`."""


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model as the store knows it."""

    model_id: int
    name: str
    revision: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class ScopeState:
    """A scope at the snapshot of a plan: its newest tx, size, model at `as_of`, and its own index."""

    scope_id: UUID
    last_tx: int
    as_of: int
    live_nodes: int
    model: Model | None
    indexed: bool

    @property
    def newest(self) -> bool:
        """Whether the plan is made as of the newest transaction."""
        return self.as_of == self.last_tx


@dataclass(frozen=True)
class Frame:
    """One plan's recall: everything the legs read, nothing they write."""

    state: ScopeState
    request: PlanRequest
    settings: Settings
    queries: Vectors

    @cached_property
    def method(self) -> Method:
        """How the semantic leg searches. Raises RequestError where `ann` is asked for and cannot be had."""
        asked, state = self.request.method or "auto", self.state
        if asked == "auto":
            return (
                "ann"
                if state.newest and state.indexed and state.live_nodes > self.settings.exact_limit
                else "exact"
            )
        if asked == "ann" and not state.newest:
            raise RequestError("method ann works at the newest as_of only; use exact", field="method")
        if asked == "ann" and not state.indexed:
            raise RequestError(
                "method ann needs the scope's vector index; `planner scope index` builds it",
                field="method",
            )
        return asked

    @cached_property
    def _compiled(self) -> tuple[dict[str, Any], sql.Composable, sql.Composable, sql.Composable, bool]:
        compiler = Compiler()
        match = compiler.predicate(self.request.match) if self.request.match is not None else sql.SQL("false")
        must, window = compiler.predicate(self.request.must), compiler.window(self.request.window)
        restricted = self.request.must is not None or self.request.window is not None
        restriction = sql.SQL("{} AND {}").format(window, must) if restricted else TRUE
        return compiler.params, match, must, restriction, restricted

    @property
    def match(self) -> sql.Composable:
        """The structured filter on `n`; false where the request has none."""
        return self._compiled[1]

    @property
    def must(self) -> sql.Composable:
        """The restriction of every leg, on `n`."""
        return self._compiled[2]

    @property
    def restriction(self) -> sql.Composable:
        """Window and `must` together, on `n`: what bounds the semantic and the expansion leg."""
        return self._compiled[3]

    @property
    def restricted(self) -> bool:
        """Whether there is a window or a `must` at all."""
        return self._compiled[4]

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters that every statement of recall shares, filters' values included."""
        model = self.state.model
        return {
            "scope_id": self.state.scope_id,
            "as_of": self.state.as_of,
            "model_id": model.model_id if model else None,
            **self._compiled[0],
        }


def read_state(conn: Connection, scope: str, scope_id: UUID, as_of: int | None) -> ScopeState:
    """Read the scope's state. Raises UnknownScope, and RequestError for an `as_of` that is not yet."""
    row = run(conn, "scope_state", {"scope_id": scope_id, "as_of": as_of}).fetchone()
    if row is None:
        raise UnknownScope(f"no scope {scope!r}", scope=scope)
    last_tx, live_nodes, model_id, name, revision, dimensions, indexed = row
    if as_of is not None and not 1 <= as_of <= last_tx:
        raise RequestError(
            f"as_of = {as_of}: the ledger of {scope!r} has transactions 1 to {last_tx}", field="as_of"
        )
    model = Model(model_id, name, revision, dimensions) if model_id is not None else None
    return ScopeState(scope_id, last_tx, as_of or last_tx, live_nodes, model, indexed)
