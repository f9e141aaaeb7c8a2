"""A shelf in memory: documents made of spans, which answers as strictly as one that reads a database.

It returns only the passages that were asked for, and the volumes that hold them, and keeps what was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from planner.hashing import text_hash
from planner.types import Document, Hit, Passage, SpanRef, Volume

Said = tuple[str, str | None, datetime | None]
"""A message: its text, speaker and time."""


@dataclass
class MemoryShelf:
    """Documents by key, and the canonical text of their volumes."""

    held: dict[str, Document] = field(default_factory=dict)
    texts: dict[tuple[str, int], bytes] = field(default_factory=dict)
    reads: list[list[SpanRef]] = field(default_factory=list)
    _keys: dict[tuple[str, int], str] = field(default_factory=dict)
    _at: dict[SpanRef, int] = field(default_factory=dict)

    def put(self, document: Document, texts: Mapping[tuple[str, int], bytes]) -> Document:
        self.held[document.key] = document
        self.texts.update(texts)
        self._keys.update(((v.source_id, v.version_tx), document.key) for v in document.volumes)
        self._at.update((p.ref, p.position) for p in document.passages)
        return document

    def key(self, ref: SpanRef) -> str:
        return self._keys[ref[:2]]

    def documents(self, refs: Sequence[SpanRef], neighbours: int | None) -> Mapping[str, Document]:
        wanted: dict[str, set[int]] = {}
        for ref in refs:
            key = self.key(ref)
            near, position = wanted.setdefault(key, set()), self._at.get(ref)
            if neighbours is None:
                near.update(range(self.held[key].length))
            elif position is not None:
                near.update(range(position - neighbours, position + neighbours + 1))
        return {key: self._part(key, near, refs) for key, near in wanted.items()}

    def _part(self, key: str, near: set[int], refs: Sequence[SpanRef]) -> Document:
        document = self.held[key]
        passages = tuple(document.passages[i] for i in sorted(near) if 0 <= i < document.length)
        versions = {p.ref[:2] for p in passages} | {ref[:2] for ref in refs}
        volumes = tuple(v for v in document.volumes if (v.source_id, v.version_tx) in versions)
        return replace(document, passages=passages, volumes=volumes)

    def read(self, refs: Sequence[SpanRef]) -> Sequence[bytes | None]:
        self.reads.append(list(refs))
        return [self._slice(ref) for ref in refs]

    def _slice(self, ref: SpanRef) -> bytes | None:
        text = self.texts.get(ref[:2])
        return None if text is None else text[ref.start : ref.end]

    @property
    def bytes_read(self) -> int:
        return sum(ref.end - ref.start for refs in self.reads for ref in refs)

    def hit(self, rank: int, document: Document, position: int) -> Hit:
        passage = document.passages[position]
        return Hit(rank, passage.ref, document.key, passage.text_hash)


def plain(
    source: str, parts: Iterable[str], between: str = "\n\n", **about: object
) -> tuple[Document, bytes]:
    """Return a document of paragraphs, and its text."""
    refs, text = _laid_out(source, 1, list(parts), between)
    passages = tuple(
        Passage(ref, i, "paragraph", text_hash=text_hash(text[ref.start : ref.end]))
        for i, ref in enumerate(refs)
    )
    volume = Volume(source, 1, len(text), **about)  # type: ignore[arg-type]
    return Document(source, False, (volume,), passages, len(passages)), text


def conversation(
    source: str, messages: Sequence[Said], kept: str = "one", **about: object
) -> tuple[Document, dict[tuple[str, int], bytes]]:
    """Return a conversation and its texts: kept as `one` source, `appended` to it, a source a `message`."""
    volumes: list[Volume] = []
    passages: list[Passage] = []
    texts: dict[tuple[str, int], bytes] = {}
    for number, part in enumerate(_volumes(messages, kept)):
        name = f"{source}/{number}" if kept == "message" else source
        lead = "\n\n" if number and kept == "appended" else ""
        refs, text = _laid_out(name, number + 1, [said[0] for said in part], "\n\n", lead)
        texts[name, number + 1] = text
        volumes.append(Volume(name, number + 1, len(text), **about))  # type: ignore[arg-type]
        for ref, (_, speaker, at) in zip(refs, part, strict=True):
            hashed = text_hash(text[ref.start : ref.end])
            passages.append(Passage(ref, len(passages), "message", speaker, at, (), hashed))
    return Document(source, True, tuple(volumes), tuple(passages), len(passages)), texts


def _volumes(messages: Sequence[Said], kept: str) -> list[Sequence[Said]]:
    size = {"one": len(messages), "appended": 3, "message": 1}[kept]
    return [messages[i : i + size] for i in range(0, len(messages), size)]


def _laid_out(
    source: str, version: int, parts: Sequence[str], between: str, lead: str = ""
) -> tuple[list[SpanRef], bytes]:
    text, refs = bytearray(lead.encode()), []
    for number, part in enumerate(parts):
        text += between.encode() if number else b""
        refs.append(SpanRef(source, version, len(text), len(text) + len(part.encode())))
        text += part.encode()
    return refs, bytes(text)
