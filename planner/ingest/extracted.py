"""Canonical text of formats whose own bytes are no text to cite: what was extracted, in document order."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from planner.ingest.blocks import Block, assemble
from planner.types import Batch, JsonObject, SourceDraft

PARAGRAPH_BREAK = "\n\n"
MAX_LABEL_CHARS = 200


def short(text: str) -> str:
    """Return a text as a label: on one line, and bounded."""
    return " ".join(text[: 4 * MAX_LABEL_CHARS].split())[:MAX_LABEL_CHARS]


class Extract:
    """Collects extracted texts; each becomes a block of the canonical text that they are joined to."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.title: str | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._blocks: list[Block] = []
        self._path: list[tuple[int, str, int]] = []

    @property
    def text(self) -> str:
        """The canonical text so far."""
        return b"".join(self._parts).decode()

    def heading(self, text: str, level: int) -> None:
        """Add a heading, which opens a section; the first of level 1 is the title."""
        shown = short(text)
        self._path = [heading for heading in self._path if heading[0] < level]
        parent = self._path[-1][2] if self._path else None
        path = (*(name for _, name, _ in self._path), shown)
        start, end = self._write(text, PARAGRAPH_BREAK)
        self._blocks.append(Block(start, end, "heading", path, parent))
        self._path.append((level, shown, start))
        if level == 1 and self.title is None:
            self.title = shown

    def add(
        self,
        text: str,
        kind: str,
        *,
        break_before: str = PARAGRAPH_BREAK,
        label: str | None = None,
        speaker: str | None = None,
        time: datetime | None = None,
        attributes: JsonObject | None = None,
    ) -> None:
        """Add a text of one kind below the headings so far."""
        start, end = self._write(text, break_before)
        path = tuple(name for _, name, _ in self._path)
        parent = self._path[-1][2] if self._path else None
        self._blocks.append(
            Block(start, end, kind, path, parent, speaker, label, attributes=attributes or {}, time=time)
        )

    def batch(self, draft: SourceDraft, max_span_chars: int) -> Batch:
        """Return the batch of what was added. Raises EmptyInput where that is no text."""
        return assemble(replace(draft, text=b"".join(self._parts)), self._blocks, max_span_chars)

    def _write(self, text: str, break_before: str) -> tuple[int, int]:
        if self._parts:
            self._parts.append(break_before.encode())
            self._size += len(self._parts[-1])
        start = self._size
        self._parts.append(text.encode())
        self._size += len(self._parts[-1])
        return start, self._size
