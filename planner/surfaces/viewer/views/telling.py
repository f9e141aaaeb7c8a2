"""What several pages of a plan read: its record, and what is known today of the spans that they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.surfaces.viewer.told import Teller
from planner.surfaces.viewer.visit import Visit
from planner.types import EvidencePlan, PlannedSpan, PlanRef

LOOKED_UP = 1_000
"""How many nodes are looked up to say how evidence was found; there are seldom more than 512."""


def tell(visit: Visit, ref: PlanRef, shown: Callable[[EvidencePlan], Sequence[PlannedSpan]]) -> Teller:
    """Read a plan, and of the spans of it that `shown` picks their texts, sources and nodes."""
    planner = visit.planner
    record = planner.recorded(ref)
    plan = record.to_plan({})
    refs = list(dict.fromkeys(span.verdict.candidate.ref for span in shown(plan)))
    versions = {span_ref[:2] for span_ref in refs} | {span.verdict.candidate.ref[:2] for span in plan.spans}
    texts = dict(zip(refs, planner.texts(ref.scope, refs), strict=True))
    recall = planner.recalled(ref, limit=LOOKED_UP)
    nodes = {named.node.node_id: named for named in recall.nodes}
    return Teller(record, plan, planner.volumes(ref.scope, versions), texts, nodes, recall)
