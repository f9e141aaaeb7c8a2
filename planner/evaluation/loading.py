"""A corpus becomes a store: every source is ingested, and labels become bytes of canonical text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.client import Planner
from planner.errors import IngestError, MalformedInput
from planner.evaluation.corpora import Corpus, Evidence, Question, Source
from planner.evaluation.metrics import Item
from planner.pipeline.browse import SourceDetail

BOM = b"\xef\xbb\xbf"

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def load(planner: Planner, corpus: Corpus, progress: Progress) -> None:
    """Ingest every source of a corpus. Raises IngestError naming the source."""
    for number, source in enumerate(corpus.sources, start=1):
        try:
            _ingest(planner, source)
        except IngestError as error:
            raise type(error)(f"source {source.source_id!r}: {error}", **error.detail) from error
        progress(f"{corpus.name}: ingest", number, len(corpus.sources))


class Labels:
    """Finds the labelled evidence of questions among what was ingested."""

    def __init__(self, planner: Planner, corpus: Corpus) -> None:
        """Take a planner on the store that holds the corpus."""
        self._planner = planner
        self._texts = {(s.scope, s.source_id): s.text for s in corpus.sources}
        self._details: dict[tuple[str, str], SourceDetail] = {}

    def items(self, question: Question) -> tuple[Item, ...]:
        """Return the evidence of a question as bytes of canonical text.

        Raises MalformedInput where a labelled text was not ingested as it stands.
        """
        return tuple(self._item(question.scope, evidence) for evidence in question.evidence)

    def _item(self, scope: str, evidence: Evidence) -> Item:
        detail = self._detail(scope, evidence.source_id)
        if evidence.message_id is not None:
            spans = [h.ref for h in detail.spans if h.span.message_id == evidence.message_id]
            if not spans:
                raise MalformedInput(f"evidence {evidence}: the message holds no text")
            return Item(evidence.source_id, tuple((ref.start, ref.end) for ref in spans))
        data = (self._texts[scope, evidence.source_id] or "").encode()
        if detail.byte_length != _canonical_length(data):
            raise MalformedInput(
                f"evidence {evidence}: {detail.media_type} is not ingested byte for byte; "
                "label text/plain or text/markdown"
            )
        start, end = (_canonical_length(data[:offset]) for offset in (evidence.start, evidence.end))
        return Item(evidence.source_id, ((start, end),))

    def _detail(self, scope: str, source_id: str) -> SourceDetail:
        if (scope, source_id) not in self._details:
            self._details[scope, source_id] = self._planner.source(scope, source_id)
        return self._details[scope, source_id]


def _ingest(planner: Planner, source: Source) -> None:
    if source.messages is None:
        about: dict[str, Any] = {"media_type": source.media_type, "title": source.title}
        planner.ingest_text(source.scope, source.source_id, source.text or "", **about)
        return
    messages = [message.model_dump(exclude_none=True) for message in source.messages]
    planner.ingest_conversation(source.scope, source.source_id, messages, title=source.title)


def _canonical_length(data: bytes) -> int:
    """Return the length of the beginning of a text in canonical form: no mark, newlines of one byte."""
    return len(data.removeprefix(BOM).replace(b"\r\n", b"\n"))
