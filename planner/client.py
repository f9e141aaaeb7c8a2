"""The library's front door: one object, thread-safe over a connection pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from planner.delivering import Delivering
from planner.embedders import embedder as embedder_named
from planner.engine import Engine, once, utc_now
from planner.errors import IngestError
from planner.expecting import Expecting
from planner.granting import Granting
from planner.ingest import parse
from planner.ingest.media import CONVERSATION
from planner.looking import Looking
from planner.pipeline import append, browse, tuning
from planner.pipeline.browse import Scope, SourceDetail, SourcePage
from planner.pipeline.derive import derive
from planner.pipeline.ingest import Ingested, ingest
from planner.pipeline.once import Once
from planner.pipeline.plan import plan
from planner.pipeline.ready import Readiness, ready
from planner.pipeline.reembed import DEFAULT_BATCH, Reembedded, reembed
from planner.pipeline.reembed import Progress as ReembedProgress
from planner.pipeline.reindex import LexicalIndex, build_lexical
from planner.pipeline.tuning import VectorIndex
from planner.pipeline.withdraw import withdraw_vanished
from planner.ports import Clock, Embedder, Rescorer, TokenCounter
from planner.reading import InputFile, discover, is_seen_whole, read, synced
from planner.request import PlanRequest
from planner.retaining import Retaining
from planner.settings import Settings, load
from planner.store.connect import Pool, Store
from planner.tracing import Tracing, check_scope
from planner.types import (
    EvidencePlan,
    IngestFailure,
    IngestReport,
    SourceClass,
    Span,
    SpanRef,
    Trust,
)

Progress = Callable[[InputFile], None]
Message = Mapping[str, Any]

STATISTICS_EVERY = 500
"""Nodes written between two looks at the statistics."""


class Planner(Tracing, Delivering, Expecting, Retaining, Granting, Looking):
    """Ingests sources and plans evidence from them. Make one with `connect`, `embedded` or `from_pool`."""

    def __init__(self, engine: Engine, resources: ExitStack | None = None) -> None:
        """Take the parts; `resources` are released by `close`."""
        self.engine = engine
        self._resources = resources or ExitStack()
        self._unanalysed = 0

    @classmethod
    def connect(cls, url: str | None = None, *, settings: Settings | None = None, **parts: Any) -> Self:
        """Open a planner on a migrated database; without `url` on the configured one, else embedded.

        `parts` may bring `embedder`, `counters` (by name), `clock` and `actor`. Raises SettingsError,
        StoreUnavailable, SchemaBehind, SchemaAhead, UnsupportedServer, MissingRoles.
        """
        chosen = settings or load().settings
        target = url or chosen.database_url
        if target is None:
            return cls.embedded(settings=chosen, **parts)
        store = Store.open(
            target,
            pool_size=chosen.pool_size,
            pool_wait_ms=chosen.pool_wait_ms,
            statement_timeout_ms=chosen.statement_timeout_ms,
        )
        resources = ExitStack()
        resources.callback(store.close)
        return cls(_engine(store, chosen, **parts), resources)

    @classmethod
    def embedded(
        cls, data_dir: str | Path | None = None, *, settings: Settings | None = None, **parts: Any
    ) -> Self:
        """Open a planner on the embedded server, which is started, and whose empty database is migrated.

        Takes `parts` as `connect` does. Raises EmbeddedUnavailable, EmbeddedServerError.
        """
        from planner.embedded import EmbeddedServer  # noqa: PLC0415  # Unix only, and an extra
        from planner.store.upgrade import check, migrate  # noqa: PLC0415  # alembic, for this alone

        chosen = settings or load().settings
        folder = data_dir or chosen.data_dir
        with ExitStack() as resources:
            server = resources.enter_context(EmbeddedServer(Path(folder) if folder else None))
            if not check(server.url).up_to_date:
                migrate(server.url)
            made = cls.connect(server.url, settings=chosen, **parts)
            made._resources.push(resources.pop_all())
        return made

    @classmethod
    def from_pool(cls, pool: Pool, *, settings: Settings | None = None, **parts: Any) -> Self:
        """Open a planner on a psycopg pool of the caller's, which stays the caller's to close."""
        chosen = settings or load().settings
        store = Store(
            pool,
            pool_wait_ms=chosen.pool_wait_ms,
            statement_timeout_ms=chosen.statement_timeout_ms,
        )
        _ = store.server
        return cls(_engine(store, chosen, **parts))

    def close(self) -> None:
        """Give back the pool and, where embedded, the server."""
        self._resources.close()

    def __enter__(self) -> Self:
        """Use the planner as a context manager that closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def ingest(
        self,
        scope: str,
        paths: str | Path | Sequence[str | Path],
        *,
        title: str | None = None,
        trust: Trust = "external",
        attributes: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        sync: bool = False,
    ) -> IngestReport:
        """Ingest files, folders (sorted), globs or `-` (standard input), each source in its own transaction.

        A file that cannot be ingested is in the report's `failures`, and the rest goes on; `progress` is
        called after each file. With `sync` the paths are folders, and sources that came from folders of these
        names, but from files that are no longer there, are withdrawn; none where a folder is empty or cannot
        be read. Raises RequestError, EmbedderError, StoreError.
        """
        check_scope(scope)
        several = [paths] if isinstance(paths, (str, Path)) else list(paths)
        folders = synced(several) if sync else frozenset()
        done: list[Ingested] = []
        failures: list[IngestFailure] = []
        files: list[InputFile] = []
        for file in discover(several):
            files.append(file)
            try:
                raw = read(file, self.engine.settings.max_file_bytes)
                done.append(
                    self._ingest(
                        scope,
                        raw,
                        {"folder": file.folder, "file": file.source_id} if file.folder else {},
                        source_id=file.source_id,
                        title=title,
                        trust=trust,
                        attributes=attributes or {},
                    )
                )
            except IngestError as error:
                failures.append(IngestFailure(str(file.path or file.source_id), error.code, str(error)))
            if progress is not None:
                progress(file)
        if sync and is_seen_whole(files):
            kept = {source.source_id for made in done for source in made.sources}
            seen = {file.source_id for file in files}
            done.append(withdraw_vanished(self.engine, scope, folders=folders, files=seen, kept=kept))
        self._refresh_statistics(done)
        return _report(scope, done, failures)

    def ingest_text(
        self,
        scope: str,
        source_id: str,
        text: str | bytes,
        *,
        media_type: str | None = None,
        title: str | None = None,
        uri: str | None = None,
        trust: Trust = "external",
        attributes: Mapping[str, Any] | None = None,
        source_class: SourceClass = "truth",
        observed_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> IngestReport:
        """Ingest one source that is in memory; `text` may be a whole import file. Raises IngestError too.

        What was written under an `idempotency_key` is not written again under it, even where the source has
        changed since; the same key with something else raises ConflictingInput.
        """
        check_scope(scope)
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        about: dict[str, Any] = {
            "source_id": source_id,
            "media_type": media_type,
            "title": title,
            "uri": uri,
            "trust": trust,
            "attributes": attributes or {},
            "source_class": source_class,
            "observed_at": observed_at,
        }
        made = self._ingest(scope, raw, {}, Once.of(idempotency_key, raw, about), **about)
        self._refresh_statistics([made])
        return _report(scope, [made], [])

    def ingest_conversation(
        self,
        /,
        scope: str,
        source_id: str,
        messages: Sequence[Message],
        *,
        title: str | None = None,
        **about: Any,
    ) -> IngestReport:
        """Ingest a conversation: messages with `content`, `speaker` or `role`, `time` and `id`, in order."""
        data = append.conversation_json(messages)
        return self.ingest_text(scope, source_id, data, media_type=CONVERSATION, title=title, **about)

    def append(
        self,
        scope: str,
        conversation: str,
        messages: Sequence[Message],
        *,
        idempotency_key: str | None = None,
    ) -> IngestReport:
        """Put messages behind the last of a conversation, at the same cost however long it is.

        A message whose `id` is there already is passed over; an `idempotency_key` does the same for all of
        them. A conversation that is not there, or was withdrawn or erased, begins with these. Raises
        RequestError, IngestError, EmbedderError, StoreError.
        """
        made = append.append(
            self.engine, check_scope(scope), conversation, list(messages), key=idempotency_key
        )
        self._refresh_statistics([made])
        return _report(scope, [made], [])

    def derive(
        self,
        scope: str,
        text: str,
        from_: Sequence[str | SpanRef],
        *,
        kind: str = "summary",
        source_id: str | None = None,
        title: str | None = None,
        trust: Trust | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> IngestReport:
        """Store a text that was made from spans, such as a summary, as a source of class `cache`.

        Plans find it at a discount, and it is trusted at most as the least trusted of what it was made from.
        `source_id` defaults to one made of kind and spans; a new text of a known id is a new version. Raises
        RequestError, UnknownScope, UnknownSpan, IngestError, EmbedderError, StoreError.
        """
        refs = [ref if isinstance(ref, SpanRef) else SpanRef.parse(ref) for ref in from_]
        made = derive(
            self.engine,
            check_scope(scope),
            text,
            refs,
            kind=kind,
            source_id=source_id,
            title=title,
            trust=trust,
            attributes=attributes or {},
        )
        self._refresh_statistics([made])
        return _report(scope, [made], [])

    def plan(
        self,
        /,
        scope: str | PlanRequest | Mapping[str, Any],
        text: str | None = None,
        *,
        rescore: Rescorer | None = None,
        **fields: Any,
    ) -> EvidencePlan:
        """Plan the evidence for a question: `plan(request)`, or `plan("scope", "question", budget_tokens=…)`.

        Raises RequestError, NotFound, InsufficientEvidence, IntegrityError, EmbedderError, StoreError; all
        but the first two have left a trace that their detail names as `plan`.
        """
        return plan(self.engine, PlanRequest.of(scope, text, fields), rescore)

    def slice_text(self, scope: str, ref: str | SpanRef) -> str:
        """Return a span's text, checked against the span ledger. Raises UnknownSpan, IntegrityError."""
        wanted = ref if isinstance(ref, SpanRef) else SpanRef.parse(ref)
        return browse.slice_text(self.engine, scope, wanted)

    def span_row(self, scope: str, ref: str | SpanRef) -> Span:
        """Return a span's row of the ledger. Raises UnknownSpan."""
        wanted = ref if isinstance(ref, SpanRef) else SpanRef.parse(ref)
        return browse.span_row(self.engine, scope, wanted)

    def ready(self) -> Readiness:
        """Say whether questions can be answered now: schema, pool and embedder, each by itself."""
        return ready(self.engine)

    def scopes(self) -> tuple[Scope, ...]:
        """Return every scope by name, with its size and embedding model."""
        return browse.scopes(self.engine)

    def sources(self, scope: str, *, after: str | None = None, limit: int = 100) -> SourcePage:
        """Return a page of a scope's sources, by id from beyond `after`. Raises UnknownScope."""
        return browse.sources(self.engine, check_scope(scope), after=after, limit=limit)

    def source(self, scope: str, source_id: str) -> SourceDetail:
        """Return a source, its newest version and that one's spans. Raises UnknownScope, UnknownSource."""
        return browse.source(self.engine, check_scope(scope), source_id)

    def build_index(self, scope: str) -> VectorIndex:
        """Build the scope's own vector index, for scopes above `exact_limit`. Raises RequestError."""
        return tuning.build_index(self.engine, check_scope(scope))

    def build_lexical_index(self, scope: str, *, progress: ReembedProgress | None = None) -> LexicalIndex:
        """Build what is missing of the scope's lexical index: all of it where the scope is older than that.

        Its writers go on, and a run that was interrupted is continued by the next. Raises UnknownScope,
        IntegrityError, StoreError.
        """
        built = build_lexical(self.engine, check_scope(scope), progress=progress)
        tuning.refresh_statistics(self.engine)
        return built

    def reembed(
        self,
        scope: str,
        embedder: str | Embedder | None = None,
        *,
        batch: int = DEFAULT_BATCH,
        progress: ReembedProgress | None = None,
    ) -> Reembedded:
        """Move a scope to another embedding model: one by name, a given one, else the configured one.

        Its vectors are made `batch` nodes a transaction while the old ones serve, then one transaction
        switches; a run that was interrupted goes on. Raises UnknownScope, SettingsError, RequestError,
        ConflictingInput, EmbedderError, StoreError.
        """
        check_scope(scope)
        chosen = embedder if embedder is not None else self.engine.embedder()
        if isinstance(chosen, str):
            chosen = embedder_named(chosen, self.engine.settings.embedder_http)
        done = reembed(self.engine, scope, chosen, batch=batch, progress=progress)
        tuning.refresh_statistics(self.engine)
        return done

    def _refresh_statistics(self, done: Sequence[Ingested]) -> None:
        """After a load of some size let PostgreSQL see what it holds now; autovacuum would come later."""
        self._unanalysed += sum(made.counts.get("nodes", 0) for made in done)
        if self._unanalysed >= STATISTICS_EVERY:
            self._unanalysed = 0
            tuning.refresh_statistics(self.engine)

    def _ingest(
        self, scope: str, raw: bytes, origin: Mapping[str, str], once: Once | None = None, **about: Any
    ) -> Ingested:
        batch = parse(raw, max_span_chars=self.engine.settings.max_span_chars, **about)
        return ingest(self.engine, scope, batch, origin=origin, once=once)


def _engine(
    store: Store,
    settings: Settings,
    *,
    embedder: Embedder | None = None,
    counters: Mapping[str, TokenCounter] | None = None,
    clock: Clock = utc_now,
    actor: str = "library",
) -> Engine:
    configured = once(partial(embedder_named, settings.embedder, settings.embedder_http))
    make = configured if embedder is None else lambda: embedder
    return Engine(store, settings, make, counters or {}, clock, actor)


def _report(scope: str, done: Sequence[Ingested], failures: Sequence[IngestFailure]) -> IngestReport:
    totals: dict[str, int] = {}
    for made in done:
        for name, count in made.counts.items():
            totals[name] = totals.get(name, 0) + count
    return IngestReport(scope, tuple(s for made in done for s in made.sources), tuple(failures), totals)
