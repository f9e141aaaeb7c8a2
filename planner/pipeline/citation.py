"""Citations: a quote held against the stored text of the evidence that it cites."""

from __future__ import annotations

from planner.engine import Engine
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.explain import recorded
from planner.store.read import checked_text, slices
from planner.store.retry import retried
from planner.trace.citation import Citation, cited, folded, judged
from planner.types import Candidate, EvidencePlan, PlanRef


def verify_citation(engine: Engine, plan: EvidencePlan | PlanRef, quote: str, evidence: str) -> Citation:
    """Say whether a quote is in the evidence of a plan that it cites, by the text that the store holds now.

    Raises RequestError, UnknownPlan, IntegrityError where that text is not the one that was planned,
    StoreError.
    """
    folded(quote)
    made = recorded(engine, plan).to_plan({}) if isinstance(plan, PlanRef) else plan
    span = cited(made, evidence)
    is_truth = span is not None and span.verdict.candidate.source_class == "truth"
    text = _text(engine, made.ref.scope, span.verdict.candidate) if span and is_truth else None
    return judged(made, evidence, quote, span, text)


@retried
def _text(engine: Engine, scope: str, candidate: Candidate) -> str | None:
    """Return a span's text, None where it is erased. Raises IntegrityError."""
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader") as conn:
        (data,) = slices(conn, scope_id, [candidate.ref])
    return checked_text(candidate.ref, data, candidate.text_hash)
