"""The part of the front door that keeps what plans should hold, and checks it at every later state."""

from __future__ import annotations

from collections.abc import Iterator

from planner.engine import Engine
from planner.pipeline import expect
from planner.pipeline.browse import scopes
from planner.trace.expectation import Expectation, ExpectationRef, Expected
from planner.tracing import check_scope, plan_ref
from planner.types import PlanRef


class Expecting:
    """Turns an answered "why not" into an expectation of every later plan."""

    engine: Engine

    def expect(self, plan: str | PlanRef, what: str, note: str | None = None) -> Expectation:
        """Keep that the question of a plan is to bring a span, a node, a source or a phrase.

        Raises RequestError where the scope holds no such thing, UnknownPlan.
        """
        return expect.expect(self.engine, plan_ref(plan), what, note)

    def expectations(self, scope: str) -> tuple[Expectation, ...]:
        """Return what is expected in a scope, oldest first. Raises UnknownScope."""
        return expect.expectations(self.engine, check_scope(scope))

    def remove_expectation(self, ref: str | ExpectationRef) -> None:
        """Forget an expectation, `<scope>:<id>`. Raises RequestError, NotFound."""
        wanted = ref if isinstance(ref, ExpectationRef) else ExpectationRef.parse(ref)
        check_scope(wanted.scope)
        expect.remove(self.engine, wanted)

    def check_expectations(self, scope: str | None = None) -> Iterator[Expected]:
        """Plan every expectation of a scope, or of all, at the newest state, and yield what became of each.

        The plans are kept, to be asked about. Raises UnknownScope, EmbedderError, StoreError.
        """
        names = [check_scope(scope)] if scope is not None else [found.name for found in scopes(self.engine)]
        for name in names:
            for expectation in expect.expectations(self.engine, name):
                yield expect.ask_again(self.engine, expectation)
