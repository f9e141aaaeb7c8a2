"""Ids: content decides them, nothing random (store.md), so the same ingest gives the same ids everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from blake3 import blake3

from planner.types import NO_TEXT_HASH, SpanRef

SOURCE_KIND = "source"
"""The kind of the one node that stands for a whole source."""

MAX_ID_BYTES = 512


def scope_id(name: str) -> UUID:
    """Return the id of the scope `name`: 16 bytes of BLAKE3, marked as a UUID of version 8 (RFC 9562)."""
    digest = bytearray(blake3(b"planner/scope\0" + name.encode()).digest(length=16))
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    return UUID(bytes=bytes(digest))


def node_id(source_id: str, kind: str, text_hash: bytes, occurrence: int) -> str:
    """Return the default id of a node, 32 hex digits.

    `occurrence` counts, from 0, the spans of this kind and text within the source: an unchanged paragraph
    keeps its node wherever it moves to, and a repeated one gets a second node.
    """
    parts = _prefixed((source_id.encode(), kind.encode(), text_hash))
    return _digest(b"planner/node\0" + parts + occurrence.to_bytes(8, "little"))


def source_node_id(source_id: str) -> str:
    """Return the id of the node of a source itself, known before the source has arrived."""
    return node_id(source_id, SOURCE_KIND, NO_TEXT_HASH, 0)


def derived_id(kind: str, made_from: Iterable[SpanRef]) -> str:
    """Return the default id of a source that was made from spans: its kind, and 32 hex digits of both."""
    parts = _prefixed((kind.encode(), *(str(ref).encode() for ref in made_from)))
    return f"{kind}-" + _digest(b"planner/derived\0" + parts)


def _prefixed(parts: Iterable[bytes]) -> bytes:
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def _digest(identity: bytes) -> str:
    return blake3(identity).hexdigest(length=16)


def stem(source_id: str) -> str:
    """Return the last part of a source id without its extension: the title of last resort."""
    name = source_id.rsplit("/", 1)[-1]
    return name.rpartition(".")[0] or name or source_id
