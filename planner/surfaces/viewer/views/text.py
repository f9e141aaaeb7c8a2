"""A source: its canonical text, marked by what a plan, or the newest plans, made of each span."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from planner.errors import RequestError
from planner.pipeline.browse import HeldSpan
from planner.pipeline.text import SourceText, SourceUse
from planner.surfaces.viewer.marks import Mark, runs
from planner.surfaces.viewer.visit import Answer, Page, Visit
from planner.trace.record import Record
from planner.types import Outcome, SpanRef, Verdict, evidence_id, ranked

SPANS = 200
VERSIONS = 50


def text(visit: Visit) -> Answer:
    """Show a page of a source's text; `plan` names the plan whose marks are shown."""
    source_id, version, plan_id = visit.asked("id"), visit.maybe("version"), visit.asked("plan")
    if source_id is None:
        raise RequestError("name a source: id=…", field="id")
    found = visit.planner.source_text(
        visit.scope, source_id, version, offset=visit.number("from"), limit=SPANS
    )
    ref = visit.access.plan(f"{visit.scope}:{plan_id}") if plan_id else None
    record = visit.planner.recorded(ref) if ref else None
    use = None if record else visit.planner.source_use(visit.scope, source_id)
    said = _by_plan(found, record) if record else {}
    marks = _marks(found.spans, said, use)
    context = {
        "found": found,
        "record": record,
        "use": use,
        "said": said,
        "names": _names(record) if record else {},
        "texts_use": {held.ref: use.texts.get(held.span.text_hash) for held in found.spans} if use else {},
        "held": {held.ref: held.span for held in found.spans},
        "pieces": [(piece, runs(piece, [held.ref for held in found.spans], marks)) for piece in found.pieces],
        "counts": Counter(marks.values()),
        "versions": visit.planner.versions(visit.scope, source_id)[::-1],
        "most_versions": VERSIONS,
        "elsewhere": _elsewhere(found, record) if record else [],
        "decided": [v for v in record.selection.verdicts if v.candidate.source_id == source_id]
        if record
        else [],
    }
    return Page("source.html", context)


def _by_plan(found: SourceText, record: Record) -> dict[SpanRef, Verdict]:
    """Return what a plan made of the spans: of each itself, else of its text in another version."""
    own = [v for v in record.selection.verdicts if v.candidate.source_id == found.source_id]
    exact = {v.candidate.ref: v for v in own}
    by_text = {v.candidate.text_hash: v for v in reversed(own)}
    said = {held.ref: exact.get(held.ref) or by_text.get(held.span.text_hash) for held in found.spans}
    return {ref: verdict for ref, verdict in said.items() if verdict is not None}


def _marks(
    spans: Iterable[HeldSpan], said: Mapping[SpanRef, Verdict], use: SourceUse | None
) -> dict[SpanRef, Mark]:
    marks = {}
    for held in spans:
        verdict, used = said.get(held.ref), use.texts.get(held.span.text_hash) if use else None
        selected = verdict.outcome is Outcome.SELECTED if verdict else bool(used and used.selected)
        known = verdict is not None or used is not None
        marks[held.ref] = Mark.SELECTED if selected else Mark.REJECTED if known else Mark.NEVER
    return marks


def _names(record: Record) -> dict[SpanRef, str]:
    best = ranked(record.to_plan({}))
    return {span.verdict.candidate.ref: evidence_id(rank) for rank, span in enumerate(best, 1)}


def _elsewhere(found: SourceText, record: Record) -> list[SpanRef]:
    """Return the spans of this source that the plan selected from versions other than those shown."""
    refs = [v.candidate.ref for v in record.selection.selected if v.candidate.source_id == found.source_id]
    return [ref for ref in refs if not found.base_tx <= ref.version_tx <= found.version_tx]
