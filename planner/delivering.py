"""The part of the front door that hands evidence to a model: a plan's, or a question's in one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.engine import Engine
from planner.pipeline import deliver
from planner.pipeline.context import context
from planner.pipeline.read_source import SourceReading, evidence_ref, read_source
from planner.ports import Rescorer
from planner.request import DeliverRequest, PlanRequest
from planner.trace.delivery import DeliveryRecord
from planner.tracing import check_scope, plan_ref
from planner.types import Delivery, EvidencePlan, OnMisfit, PlanRef, SpanRef, Unit


class Delivering:
    """Packs evidence into the exact text that a model reads, under a budget that counts all of it."""

    engine: Engine

    def deliver(
        self,
        plan: str | PlanRef | EvidencePlan,
        unit: Unit | None = None,
        *,
        budget_tokens: int | None = None,
        counter: str | None = None,
        neighbours: int = 1,
        on_misfit: OnMisfit | None = None,
        max_frac: float | None = None,
        keep: bool = True,
    ) -> Delivery:
        """Deliver what a plan selected as a text of at most `budget_tokens`, framing and labels included.

        A hit becomes its span (`chunk`), the span with its `neighbours` (`window`), its whole source or
        conversation (`record`), or the largest of these that fits (`auto`). Unit and counter default to the
        setting `unit` and the plan's counter, the budget to the one the plan was asked for. Without `keep`
        nothing is written down. Raises RequestError, UnknownPlan, InsufficientEvidence naming a budget that
        suffices, IntegrityError, CounterError, StoreError.
        """
        request = DeliverRequest(
            unit=unit,
            budget_tokens=budget_tokens,
            counter=counter,
            neighbours=neighbours,
            on_misfit=on_misfit,
            max_frac=max_frac,
        )
        return deliver.deliver(
            self.engine, plan if isinstance(plan, EvidencePlan) else plan_ref(plan), request, keep=keep
        )

    def context(
        self,
        /,
        scope: str | PlanRequest | Mapping[str, Any],
        text: str | None = None,
        unit: Unit | None = None,
        *,
        neighbours: int = 1,
        on_misfit: OnMisfit | None = None,
        max_frac: float | None = None,
        rescore: Rescorer | None = None,
        **fields: Any,
    ) -> Delivery:
        """Plan the evidence for a question and deliver it: `context("scope", "question", budget_tokens=…)`.

        The budget bounds the bundle; `fields` are those of a plan's request. Raises what `plan` and `deliver`
        raise; InsufficientEvidence names a budget that suffices for both.
        """
        request = PlanRequest.of(scope, text, fields)
        how = DeliverRequest(unit=unit, neighbours=neighbours, on_misfit=on_misfit, max_frac=max_frac)
        return context(self.engine, request, how, rescore)

    def read_source(
        self,
        scope: str,
        source_id: str,
        *,
        budget_tokens: int | None = None,
        start: str | None = None,
        counter: str | None = None,
    ) -> SourceReading:
        """Deliver a source's passages from a place on, as many as fit into `budget_tokens`, framing included.

        `start` is `<version>:<byte>` as an envelope says it, or the `next_start` of the reading before.
        Budget and counter default to the settings. Raises RequestError, UnknownScope, UnknownSource,
        UnknownSpan, InsufficientEvidence naming a budget that suffices, IntegrityError, CounterError,
        StoreError.
        """
        how = DeliverRequest(budget_tokens=budget_tokens, counter=counter)
        return read_source(self.engine, check_scope(scope), source_id, how, start)

    def evidence_ref(self, plan: str | PlanRef, evidence: str) -> SpanRef:
        """Return the span that is a plan's evidence `E<rank>`, in the version that was current for the plan.

        Raises RequestError, UnknownPlan, UnknownSpan.
        """
        return evidence_ref(self.engine, plan_ref(plan), evidence)

    def deliveries(self, plan: str | PlanRef) -> tuple[DeliveryRecord, ...]:
        """Return what was delivered of a stored plan, oldest first. Raises UnknownPlan."""
        return deliver.deliveries(self.engine, plan_ref(plan))
