"""The part of the front door that decides what stays: versions, pruning, erasure, whole scopes."""

from __future__ import annotations

from dataclasses import replace

from planner.engine import Engine
from planner.pipeline import erase, retention
from planner.pipeline.erase import Erased
from planner.pipeline.retention import DeletedScope, PrunedVersions, SourceVersion
from planner.tracing import check_scope


class Retaining:
    """Keeps and deletes what was ingested."""

    engine: Engine

    def versions(self, scope: str, source_id: str) -> tuple[SourceVersion, ...]:
        """Return every version of a source, oldest first. Raises UnknownScope, UnknownSource."""
        return retention.versions(self.engine, check_scope(scope), source_id)

    def prune_versions(
        self, scope: str, source_id: str, *, keep_versions: int, even_cited: bool = False
    ) -> PrunedVersions:
        """Delete a source's old versions, but none that is in use.

        A version that a kept plan selected from is in use, unless `even_cited`. Raises UnknownScope,
        UnknownSource, RequestError.
        """
        return retention.prune(
            self.engine, check_scope(scope), source_id, keep_versions=keep_versions, even_cited=even_cited
        )

    def erase(self, scope: str, source_id: str, *, scrub: bool = False) -> Erased:
        """Erase what a source and the caches made from it say; what plans decided stays.

        `scrub` writes the tables anew afterwards, so that not a byte stays in them. Raises UnknownScope,
        UnknownSource.
        """
        erased = erase.erase(self.engine, check_scope(scope), source_id)
        return replace(erased, held_back=erase.scrub(self.engine)) if scrub else erased

    def delete_scope(self, scope: str) -> DeletedScope:
        """Delete a scope with everything in it, traces and tokens too. Raises UnknownScope."""
        return retention.delete_scope(self.engine, check_scope(scope))
