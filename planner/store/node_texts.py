"""What versions of nodes say, read back as ingest had it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from planner.ingest import SpanText
from planner.ingest.embed_text import SpanKey
from planner.lexical.documents import Setting
from planner.store.connect import Connection, run
from planner.store.read import checked_text, slices
from planner.types import NodeDraft, SpanRef

Version = tuple[str, int]
"""One version of a node: its id, and the transaction that it is from."""


@dataclass(frozen=True, slots=True)
class NodeText:
    """A version of a node with the texts of its spans, and what they stand in."""

    version: Version
    node: NodeDraft
    texts: Mapping[SpanKey, SpanText]
    settings: Mapping[SpanKey, Setting]


def node_texts(conn: Connection, scope_id: UUID, versions: Sequence[Version]) -> list[NodeText]:
    """Return what these versions say, of those that are there and have spans; an erased text is empty.

    Raises IntegrityError where a text does not have the hash that the span ledger holds.
    """
    nodes, since = [node_id for node_id, _ in versions], [tx_from for _, tx_from in versions]
    asked = {"scope_id": scope_id, "nodes": nodes, "versions": since}
    rows = run(conn, "spans_of_versions", asked).fetchall()
    refs = [SpanRef(*row[4:8]) for row in rows]
    cut = slices(conn, scope_id, refs)
    said = [checked_text(ref, data, row[9]) or "" for ref, data, row in zip(refs, cut, rows, strict=True)]
    found = []
    for (node_id, tx_from, kind, label), spans in groupby(zip(rows, said, strict=True), lambda s: s[0][:4]):
        texts: dict[SpanKey, SpanText] = {}
        settings: dict[SpanKey, Setting] = {}
        for (*_, source_id, _, start, end, span_kind, _, title, heading_path, speaker), text in spans:
            texts[source_id, start, end] = SpanText(span_kind, text)
            settings[source_id, start, end] = Setting(title, heading_path, speaker)
        node = NodeDraft(node_id, kind, label, tuple(texts))
        found.append(NodeText((node_id, tx_from), node, texts, settings))
    return found
