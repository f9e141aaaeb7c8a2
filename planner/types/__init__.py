"""The nouns, in the order in which data flows: source, span, node, edge, candidate, selection, plan.

All frozen; ranges are half-open byte ranges of a source version's canonical UTF-8 text.
"""

from planner.types.plan import (
    EvidencePlan,
    PlannedSpan,
    weight_bits,
)
from planner.types.pool import (
    Budget,
    Candidate,
    Outcome,
    Reached,
    RecalledNode,
    Selection,
    SelectionPolicy,
    Verdict,
)
from planner.types.refs import (
    NO_TEXT_HASH,
    OPEN_TX,
    STRUCTURE,
    TRUST_ORDER,
    JsonObject,
    PlanRef,
    SourceClass,
    SpanRef,
    Trust,
)
from planner.types.source import (
    Batch,
    EdgeDraft,
    IngestedSource,
    IngestFailure,
    IngestReport,
    NodeDraft,
    SourceDraft,
    Span,
)

__all__ = [
    "NO_TEXT_HASH",
    "OPEN_TX",
    "STRUCTURE",
    "TRUST_ORDER",
    "Batch",
    "Budget",
    "Candidate",
    "EdgeDraft",
    "EvidencePlan",
    "IngestFailure",
    "IngestReport",
    "IngestedSource",
    "JsonObject",
    "NodeDraft",
    "Outcome",
    "PlanRef",
    "PlannedSpan",
    "Reached",
    "RecalledNode",
    "Selection",
    "SelectionPolicy",
    "SourceClass",
    "SourceDraft",
    "Span",
    "SpanRef",
    "Trust",
    "Verdict",
    "weight_bits",
]
