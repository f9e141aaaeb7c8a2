"""What a batch changes against what is current: pure, so it is computed before the lock and inside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from planner.errors import ConflictingInput
from planner.hashing import text_hash
from planner.types import Batch, EdgeDraft, NodeDraft, SourceDraft

EdgeKey = tuple[str, str, str]
Interval = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """The newest version of a source, as idempotency compares it.

    Where it extends others, `content` is that of the whole text. One that has `ended` (it was withdrawn or
    erased) is equal to nothing.
    """

    version_tx: int
    content: tuple[Any, ...]
    metadata: tuple[Any, ...]
    identity: tuple[Any, ...]
    ended: bool


@dataclass(frozen=True, slots=True)
class CurrentNode:
    """A node that is current, with what makes it the same node state."""

    fingerprint: tuple[Any, ...]
    owned: bool


@dataclass(frozen=True, slots=True)
class Current:
    """The state of a scope that a batch meets, at `last_tx`."""

    last_tx: int
    versions: Mapping[str, CurrentVersion] = field(default_factory=dict)
    nodes: Mapping[str, CurrentNode] = field(default_factory=dict)
    edges: Mapping[EdgeKey, tuple[float, datetime | None, datetime | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be written: new versions, nodes and edges to open, nodes and edges to close."""

    sources: tuple[SourceDraft, ...]
    opened: tuple[NodeDraft, ...]
    replaced: frozenset[str]
    gone: frozenset[str]
    edges: tuple[EdgeDraft, ...]
    closed_edges: tuple[EdgeKey, ...]

    def __bool__(self) -> bool:
        """Say whether there is anything to write."""
        return bool(self.sources or self.opened or self.gone or self.edges or self.closed_edges)


def changes(batch: Batch, current: Current) -> Changes:
    """Return what `batch` changes. Raises ConflictingInput where a source would change what it is."""
    changed = tuple(s for s in batch.sources if _is_changed(s, current.versions.get(s.source_id)))
    described = {s.source_id for s in changed if _is_redescribed(s, current.versions.get(s.source_id))}
    hashes = {s.source_id: s for s in batch.sources}
    wanted = {node.node_id: node for node in batch.nodes}
    opened = tuple(
        node for node in batch.nodes if not _is_kept(node, hashes, current.nodes.get(node.node_id), described)
    )
    replaced = frozenset(node.node_id for node in opened if node.node_id in current.nodes)
    gone = frozenset(
        node_id for node_id, node in current.nodes.items() if node.owned and node_id not in wanted
    )
    edges, closed = _edge_changes(batch, current, gone)
    return Changes(changed, opened, replaced, gone, edges, closed)


def fingerprint(node: NodeDraft, sources: Mapping[str, SourceDraft]) -> tuple[Any, ...]:
    """Return what makes a node state the same: its fields, and the texts it was derived from, in order."""
    provenance = tuple(
        f"{source}\x1f{text_hash(sources[source].text[start:end]).hex()}"
        for source, start, end in sorted(node.spans)
    )
    return (
        node.kind,
        node.label,
        canonical_json(node.attributes),
        node.confidence,
        node.valid_from,
        node.valid_to,
        node.observed_at,
        provenance,
    )


def canonical_json(value: object) -> str:
    """Return JSON text that is the same for equal data."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def content_of(source: SourceDraft) -> tuple[Any, ...]:
    """Return what makes a source's text the same."""
    return (text_hash(source.text), source.parser_version)


def metadata_of(source: SourceDraft) -> tuple[Any, ...]:
    """Return what describes a source; nodes are derived again where it changes.

    Filters read it; and a node of a cache cites the version that says what it was made from.
    """
    made_from = tuple(str(ref) for ref in source.made_from)
    described = (source.title, source.uri, source.trust, canonical_json(source.attributes))
    return (*described, source.observed_at, made_from)


def identity_of(source: SourceDraft) -> tuple[Any, ...]:
    """Return what a source can never change."""
    return (source.source_class, source.media_type, source.conversation_id, source.position)


def _is_changed(source: SourceDraft, held: CurrentVersion | None) -> bool:
    if held is None:
        return True
    if identity_of(source) != held.identity:
        raise ConflictingInput(
            f"{source.source_id!r} is already known with another class, media type or conversation; "
            "these never change: use another source id",
            source_id=source.source_id,
        )
    return held.ended or content_of(source) != held.content or metadata_of(source) != held.metadata


def _is_redescribed(source: SourceDraft, held: CurrentVersion | None) -> bool:
    return held is not None and metadata_of(source) != held.metadata


def _is_kept(
    node: NodeDraft, sources: Mapping[str, SourceDraft], held: CurrentNode | None, described: set[str]
) -> bool:
    if held is None or any(source in described for source, _, _ in node.spans):
        return False
    return fingerprint(node, sources) == held.fingerprint


def _edge_changes(
    batch: Batch, current: Current, gone: frozenset[str]
) -> tuple[tuple[EdgeDraft, ...], tuple[EdgeKey, ...]]:
    wanted = {(e.src, e.dst, e.predicate): e for e in batch.edges}
    opened = tuple(
        e for key, e in wanted.items() if current.edges.get(key) != (e.confidence, e.valid_from, e.valid_to)
    )
    mine = {node.node_id for node in batch.nodes}
    replaced = {(e.src, e.dst, e.predicate) for e in opened}
    closed = tuple(
        key
        for key in current.edges
        if key[0] in gone
        or (key[1] in gone and key[2] != "links_to")
        or key in replaced
        or (key not in wanted and key[0] in mine and (batch.predicates is None or key[2] in batch.predicates))
    )
    return opened, closed
