"""A plan as its page tells it: the answer on top, shares of the budget, evidence, what was left out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.hashing import text_hash
from planner.pipeline.recalled import NamedNode, RecalledPage
from planner.trace.record import Record
from planner.trace.scoring import terms_of, told
from planner.trace.told import NEVER_PACKED, found_told, taken_by_source, walked, weight_told
from planner.types import (
    NO_TEXT_HASH,
    Candidate,
    EvidencePlan,
    PlannedSpan,
    SpanRef,
    Volume,
    evidence_id,
    ranked,
)

HUES = 7
"""How many sources have a colour of their own; the others share one."""

Version = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Share:
    """What one source has of the budget, as part of a bar of 1,000: where it begins, how wide it is."""

    source_id: str
    title: str | None
    tokens: int
    hue: int
    at: float
    wide: float


@dataclass(frozen=True, slots=True)
class Shown:
    """One span as a row or a card shows it; `number` counts from 1, `evidence` is its name in a bundle.

    `altered` says that the text is not the one that was planned with.
    """

    span: PlannedSpan
    number: int
    evidence: str | None
    text: str | None
    volume: Volume | None
    stale: bool
    altered: bool
    weight_told: str
    score_told: str | None
    node: NamedNode | None

    @property
    def candidate(self) -> Candidate:
        """The span itself."""
        return self.span.verdict.candidate

    @property
    def erased(self) -> bool:
        """Whether its text is gone."""
        return self.text is None


@dataclass(frozen=True)
class Teller:
    """A recorded plan with what was looked up beside it."""

    record: Record
    plan: EvidencePlan
    volumes: Mapping[Version, Volume]
    texts: Mapping[SpanRef, str | None]
    nodes: Mapping[str, NamedNode]
    recall: RecalledPage

    def shares(self) -> list[Share]:
        """Return the sources of the plan, the largest first, laid out along the budget."""
        taken = taken_by_source(self.plan)
        titles = {source: volume.title for (source, _), volume in self.volumes.items()}
        whole, at, out = max(1, self.plan.budget.budget), 0.0, []
        for place, (source, tokens) in enumerate(taken.items()):
            wide = 1_000 * tokens / whole
            out.append(
                Share(source, titles.get(source), tokens, min(place, HUES), round(at, 2), round(wide, 2))
            )
            at += wide
        return out

    def shown(self, spans: Sequence[PlannedSpan], first: int = 1) -> list[Shown]:
        """Return spans as they are shown, numbered from `first`."""
        names = {span.verdict.candidate.ref: evidence_id(i) for i, span in enumerate(ranked(self.plan), 1)}
        return [self._shown(span, number, names) for number, span in enumerate(spans, first)]

    def _shown(self, span: PlannedSpan, number: int, names: Mapping[SpanRef, str]) -> Shown:
        candidate = span.verdict.candidate
        text = self.texts.get(candidate.ref)
        node = self.nodes.get(candidate.node_id or "")
        terms = terms_of(self.record.recall, candidate.node_id)
        return Shown(
            span=span,
            number=number,
            evidence=names.get(candidate.ref),
            text=text,
            volume=self.volumes.get(candidate.ref[:2]),
            stale=candidate.ref in self.plan.stale,
            altered=_is_altered(text, candidate),
            weight_told=weight_told(candidate, span.verdict.weight, self.record.policy),
            score_told=told(terms)
            if terms is not None
            else found_told(self.record, node.node if node else None),
            node=node,
        )


def best_left_out(plan: EvidencePlan) -> list[PlannedSpan]:
    """Return the rejected span of most weight that is neither a repetition nor gone; none where none is."""
    left = (s for s in plan.rejected if s.verdict.outcome not in NEVER_PACKED)
    best = min(left, key=lambda span: (-span.verdict.weight, span.verdict.candidate.ref), default=None)
    return [best] if best else []


def left_out(plan: EvidencePlan, outcome: str | None, source: str | None) -> list[PlannedSpan]:
    """Return the rejected spans in the order of packing: those of an outcome, of a source, where asked."""
    return [
        span
        for span in walked(plan)
        if outcome in (None, span.verdict.outcome.value)
        and source in (None, span.verdict.candidate.source_id)
    ]


def _is_altered(text: str | None, candidate: Candidate) -> bool:
    planned = candidate.text_hash
    return (
        text is not None and planned != NO_TEXT_HASH and text_hash(text.encode("utf-8", "replace")) != planned
    )
