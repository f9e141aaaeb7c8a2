"""The part of the front door that shows what is stored: texts, what plans made of them, overviews."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from planner.engine import Engine
from planner.pipeline import explain, overview, recalled, text
from planner.pipeline.overview import Overview
from planner.pipeline.recalled import RecalledPage
from planner.pipeline.text import SourceText, SourceUse
from planner.trace.record import Record
from planner.tracing import check_scope, plan_ref
from planner.types import PlanRef, SpanRef, Volume


class Looking:
    """Reads, a page at a time, what plans read and what they made of it. Nothing is written."""

    engine: Engine

    def overview(self, scope: str, since: timedelta = timedelta(days=7), *, buckets: int = 28) -> Overview:
        """Count what the plans of a scope did in the last `since`. Raises UnknownScope, RequestError."""
        return overview.overview(self.engine, check_scope(scope), since, buckets=buckets)

    def source_text(
        self, scope: str, source_id: str, version_tx: int | None = None, *, offset: int = 0, limit: int = 200
    ) -> SourceText:
        """Return a page of a source's text as of a version, with its spans; `limit` counts these.

        Raises UnknownScope, UnknownSource, RequestError.
        """
        return text.source_text(
            self.engine, check_scope(scope), source_id, version_tx, offset=offset, limit=limit
        )

    def source_use(self, scope: str, source_id: str) -> SourceUse:
        """Return what the newest plans of a scope made of the texts of a source. Raises UnknownScope."""
        return text.source_use(self.engine, check_scope(scope), source_id)

    def volumes(self, scope: str, versions: Iterable[tuple[str, int]]) -> Mapping[tuple[str, int], Volume]:
        """Return what is known today of source versions: title, trust, whether superseded, stale or erased.

        Of one that is not there any more only that it counts as erased. Raises UnknownScope.
        """
        return text.volumes(self.engine, check_scope(scope), versions)

    def recorded(self, plan: str | PlanRef) -> Record:
        """Return all that the trace keeps of a plan but its nodes: with settings, cuts and versions.

        Raises UnknownPlan.
        """
        return explain.recorded(self.engine, plan_ref(plan))

    def texts(self, scope: str, refs: Sequence[SpanRef]) -> tuple[str | None, ...]:
        """Return the texts of spans, None of what is not there or erased; unchecked, to be looked at.

        Raises UnknownScope.
        """
        return text.texts(self.engine, check_scope(scope), refs)

    def recalled(self, plan: str | PlanRef, *, offset: int = 0, limit: int = 100) -> RecalledPage:
        """Return a page of the nodes that a plan's recall found, named, with the ways that led to them.

        Raises UnknownPlan, RequestError.
        """
        return recalled.recalled(self.engine, plan_ref(plan), offset=offset, limit=limit)
