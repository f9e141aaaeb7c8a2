"""Expectations: an answered "why not" is kept, and asked again of every later state of its scope."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from planner.engine import Engine
from planner.errors import InsufficientEvidence, NotFound, RequestError
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.browse import storable
from planner.pipeline.explain import read_record
from planner.pipeline.plan import plan
from planner.pipeline.replan import CALLER
from planner.pipeline.why import why
from planner.recall.frame import read_state
from planner.request import LIMITED, PlanRequest
from planner.settings import Settings
from planner.store.connect import run
from planner.store.retry import attempts, retried
from planner.trace.expectation import (
    REFUSED,
    Expectation,
    ExpectationRef,
    Expected,
    expectation_id,
    expected,
)
from planner.trace.record import Record
from planner.trace.why import Why
from planner.types import PlanRef

OPERATORS = (*LIMITED, "min_score", "method", "plan_model")
"""What a plan records filled in: where it equals the operator's value, it was not the caller's."""


def expect(engine: Engine, ref: PlanRef, what: str, note: str | None = None) -> Expectation:
    """Keep that the question of a plan is to bring `what`, which `why` must know; return what is kept.

    The question is kept with its filters, budget and counter, and will be asked under the settings and the
    state of the day. What is expected already stays as it is. Raises RequestError, UnknownPlan, StoreError.
    """
    if note is not None:
        storable(note, "note")
    found = why(engine, ref, what)
    if found.resolved_as is None:
        raise RequestError(f"{what!r} cannot be expected of {ref}: {found.sentence}", field="what")
    return _keep(engine, ref, found, note)


@retried
def expectations(engine: Engine, scope: str) -> tuple[Expectation, ...]:
    """Return what is expected in a scope, oldest first. Raises UnknownScope."""
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        read_state(conn, scope, scope_id, None)
        rows = run(conn, "expectations", {"scope_id": scope_id, "expectation_id": None})
        return tuple(Expectation.from_row(scope, row) for row in rows)


def remove(engine: Engine, ref: ExpectationRef) -> None:
    """Forget an expectation. Raises NotFound."""
    attempts(engine.store, repeatable=False)(_remove, engine, ref)


def _remove(engine: Engine, ref: ExpectationRef) -> None:
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "writer") as conn:
        params = {"scope_id": scope_id, "expectation_id": ref.expectation_id}
        if not run(conn, "remove_expectation", params).rowcount:
            raise NotFound(f"no expectation {ref}", expectation=str(ref))


def ask_again(engine: Engine, expectation: Expectation) -> Expected:
    """Plan the question of an expectation at the newest state, and say what became of what is expected.

    The plan is kept whatever `trace` says: `why` reads it. A request that is refused holds nothing. Raises
    EmbedderError, StoreError and what else `plan` raises.
    """
    kept = replace(engine, settings=engine.settings.model_copy(update={"trace": "sync"}))
    try:
        ref = plan(kept, PlanRequest.parse(expectation.request)).ref
    except InsufficientEvidence as error:
        ref = PlanRef.parse(str(error.plan))
    except RequestError as error:
        return Expected(expectation, False, REFUSED, f"The request is refused: {error}", None)
    return expected(expectation, why(kept, ref, expectation.what))


@retried
def _keep(engine: Engine, ref: PlanRef, found: Why, note: str | None) -> Expectation:
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "writer") as conn:
        request = _question(read_record(conn, scope_id, ref), engine.settings)
        name = {"scope_id": scope_id, "expectation_id": expectation_id(request, found.what)}
        about = {
            "plan_id": ref.plan_id,
            "what": found.what,
            "stage": found.answers[0].stage.value,
            "note": note,
        }
        made = {"created_at": engine.clock(), "actor": engine.actor, "request": json.dumps(request)}
        run(conn, "add_expectation", {**name, **about, **made})
        row = run(conn, "expectations", name).fetchone()
        assert row is not None
        return Expectation.from_row(ref.scope, row)


def _question(record: Record, settings: Settings) -> dict[str, Any]:
    """Return what the caller of a plan asked for, without what the operator's settings filled in."""
    if record.score_model.startswith(CALLER):
        raise RequestError(
            f"the scores of {record.ref} are of {record.score_model}, which cannot be asked again by itself"
        )
    asked = PlanRequest.parse(record.request)
    filled = {name for name in OPERATORS if getattr(asked, name) == getattr(settings, name)}
    return asked.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={*filled, "as_of"})
