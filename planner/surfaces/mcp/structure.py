"""What stands beside a text: figures, hashes and handles, and nothing that is stored.

Ids of sources are stored content: whoever names a source writes them. A client may show this to its model
before the text, without the framing, so sources are numbered here, as they come in the text. `E1` of a plan
is what evidence is cited by and read on from; the ids are in the envelopes of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import PlannerError
from planner.pipeline.read_source import SourceReading
from planner.surfaces.http.problems import problem_object
from planner.trace.citation import Citation
from planner.trace.why import Answer, Why
from planner.types import Delivery, IngestReport, SpanRef

SPEAKING = ("request.", "not_found", "ingest.", "evidence.", "auth.", "call.")
"""Errors that speak of what the caller sent; what others say may name what is stored."""

BESIDE = ("delivery_id", "plan", "plan_hash", "delivery_hash", "framing_version", "unit", "counter")
"""What of a delivery says nothing of a source."""


def delivered(delivery: Delivery) -> dict[str, Any]:
    """Return a delivery without texts, names and speakers."""
    said = delivery.to_dict(text=False)
    numbers = {name: number for number, name in enumerate(delivery.sources, start=1)}
    return {
        **{name: said[name] for name in (*BESIDE, "counter_bound", "budget", "used")},
        "sources": [{"source": numbers[name], "tokens": n} for name, n in delivery.sources.items()],
        "items": [
            {
                "evidence": list(item.evidence),
                "source": numbers[item.ref.source_id],
                "span": _span(item.ref),
                "unit": item.unit,
                "start": item.start,
                "end": item.end,
                "erased": item.erased,
            }
            for item in delivery.items
        ],
        "skipped": [{"evidence": skip.evidence, "reason": skip.reason} for skip in delivery.skipped],
        "cuts": [
            {"evidence": cut.evidence, "unit": cut.unit, "bytes_left_out": cut.bytes_left_out}
            for cut in delivery.cuts
        ],
    }


def reading(found: SourceReading) -> dict[str, Any]:
    """Return a reading in the same way, with where the next one begins."""
    about = {"version_tx": found.version_tx, "next_start": found.next_start, "left_out": found.left_out}
    return {"scope": found.scope, **about, **delivered(found.delivery)}


def explained(found: Why) -> dict[str, Any]:
    """Return why something is in a plan or not: stages and figures."""
    return {
        "plan": str(found.plan),
        "outcome": found.outcome,
        "resolved_as": found.resolved_as,
        "stages": dict(found.stages),
        "answers": [_answer(answer) for answer in found.answers],
        "more": found.more,
    }


def cited(found: Citation) -> dict[str, Any]:
    """Return a verdict, and which bytes of the evidence's source say the quote."""
    return {
        "plan": str(found.plan),
        "verdict": found.verdict,
        "supported": found.supported,
        "span": _span(found.ref) if found.ref else None,
        "found": _span(found.found) if found.found else None,
    }


def stored(report: IngestReport) -> dict[str, Any]:
    """Return what was written, source by source in the order in which they came."""
    return {
        "scope": report.scope,
        "sources": [
            {"status": source.status, "version_tx": source.version_tx, "spans": source.spans}
            for source in report.sources
        ],
        "counts": dict(report.counts),
    }


def refused(error: PlannerError) -> dict[str, Any]:
    """Return an error's problem object; of one that may name what is stored, no more than its kind."""
    said = problem_object(error)
    if error.code.startswith(SPEAKING):
        return said
    kept = ("type", "title", "code", "retry_after")
    return {**{name: value for name, value in said.items() if name in kept}, "detail": error.title()}


def _answer(answer: Answer) -> dict[str, Any]:
    figures = {
        name: value for name, value in answer.fate.facts.items() if isinstance(value, (bool, int, float))
    }
    return {
        "stage": answer.stage.value,
        "span": _span(answer.ref) if answer.ref else None,
        "evidence": answer.fate.facts.get("evidence"),
        **figures,
        "sufficient_budget": answer.sufficient.sufficient_budget,
        "sufficient_max_frac": answer.sufficient.sufficient_max_frac,
    }


def _span(ref: SpanRef) -> Mapping[str, int]:
    return {"version_tx": ref.version_tx, "start": ref.start, "end": ref.end}
