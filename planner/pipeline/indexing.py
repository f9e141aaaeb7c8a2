"""The lexical part of an ingest: terms before the lock, then the index and the mentions within it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from planner.ingest import source_node_id, span_texts
from planner.lexical.documents import Doc, Reader
from planner.store.changes import Changes
from planner.store.connect import Connection
from planner.store.lexical import check_count, close_rows, count, is_kept, rows_of, write_rows
from planner.store.mentions import (
    Texts,
    change_mentions,
    mentioned,
    mentioning,
    read_titles,
    sources_of,
    write_mentions,
    write_titles,
)
from planner.store.write import Turn
from planner.types import Batch


class Indexed(NamedTuple):
    """The `mentions` edges that a transaction opened, and the titles too common to be looked for."""

    mentions: int = 0
    titles_skipped: int = 0


def analysed(reader: Reader, batch: Batch, found: Changes) -> dict[str, Doc]:
    """Return the docs of the nodes that are to be opened. Raises MalformedInput where they are too many."""
    check_count(len(found.opened))
    return reader.documents(batch, found.opened, span_texts(batch))


def write_index(
    conn: Connection,
    scope_id: UUID,
    turn: Turn,
    found: Changes,
    docs: Mapping[str, Doc],
    known: Collection[str],
) -> Indexed:
    """Write what the index holds of a transaction's changes, if the scope has an index.

    The ledger entry is there, the rest need not be. `known` are the sources that had a version before.
    """
    if not is_kept(turn.lexical):
        return Indexed()
    closing = found.gone | found.replaced
    went = close_rows(conn, scope_id, turn.tx, closing)
    texts = Texts({node_id: doc.terms for node_id, doc in docs.items()}, sources_of(found.opened))
    # What extends a version has its title.
    titled = {source.source_id: source.title for source in found.sources if source.extends_tx is None}
    titles = read_titles(conn, scope_id, titled, texts, known=known)
    # Before the new texts are there: they are compared with all titles themselves.
    older, skipped = mentioning(conn, scope_id, titles)
    pairs = older | mentioned(titles, texts)
    retitled = [source_node_id(source_id) for source_id in titles.ended]
    edges = change_mentions(conn, scope_id, pairs, nodes=closing, targets=retitled)
    write_titles(conn, scope_id, turn.tx, titles)
    count(conn, scope_id, write_rows(conn, scope_id, rows_of(turn.tx, docs)), went)
    write_mentions(conn, scope_id, turn.tx, edges)
    return Indexed(len(edges.opening), skipped)
