"""Titles, and the `mentions` edges from texts to the sources that have them.

An edge is made whichever comes first, the text or the title. Titles are found by their first term that finds
something, texts by the rarest term of a title; then the whole sequence is compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

import numpy as np

from planner.ingest import source_node_id
from planner.lexical.packing import Terms, finding, pack, unpack
from planner.lexical.titles import Mentions, Title, title_forms
from planner.store.arrays import Bigints
from planner.store.changes import EdgeKey
from planner.store.connect import Connection, by_name, run
from planner.store.write import close_edges, write_edges
from planner.types import MENTIONS, OPEN_TX, EdgeDraft, NodeDraft

MAX_TEXTS = 2_000
"""A new title is not looked for in older texts where each of its terms is in more of them than this."""

Pair = tuple[str, str]
"""A node, and the source whose title it mentions."""


class Texts(NamedTuple):
    """Nodes that come into the index: the terms of their texts, and the sources that are their own."""

    terms: Mapping[str, Terms]
    sources: Mapping[str, Collection[str]]


class Titles(NamedTuple):
    """What titles come and go, and which may be mentioned.

    `changed`: the sources whose titles change, with those from now on; `ended`: which of them had others;
    `near`: current titles that some texts may mention; `nodes`: in how many nodes terms of `changed` are.
    """

    changed: Mapping[str, Sequence[Title]]
    ended: Sequence[str]
    near: Sequence[tuple[str, Terms]]
    nodes: Mapping[int, int]


def read_titles(
    conn: Connection,
    scope_id: UUID,
    titled: Mapping[str, str | None],
    texts: Texts,
    *,
    known: Collection[str],
) -> Titles:
    """Compare the titles of sources, given by id, with those that they have; find those near to texts.

    Only the sources that are `known` can have any.
    """
    wanted = {source_id: title_forms(title) for source_id, title in titled.items()}
    terms = {term for titles in wanted.values() for title in titles for term in finding(title.terms).tolist()}
    said = np.concatenate([np.zeros(0, dtype=np.int64), *texts.terms.values()])
    held_rows = _asked(conn, scope_id, "current_titles", sources=sorted(wanted.keys() & set(known)))
    counts = _asked(conn, scope_id, "term_counts", terms=sorted(terms))
    near_rows = _asked(conn, scope_id, "titles_by_term", terms=np.unique(finding(said)).tolist())
    held: dict[str, set[tuple[int, bytes]]] = {source_id: set() for source_id in wanted}
    for source_id, form, packed in held_rows:
        held[source_id].add((form, bytes(packed)))
    nodes: dict[int, int] = dict(counts)
    near = [(source_id, unpack(packed)) for source_id, packed in near_rows]
    changed = {
        source_id: titles
        for source_id, titles in wanted.items()
        if {(title.form, pack(title.terms)) for title in titles} != held[source_id]
    }
    near = [(source_id, packed) for source_id, packed in near if source_id not in changed]
    near += [(source_id, title.terms) for source_id, titles in changed.items() for title in titles]
    return Titles(changed, [source_id for source_id in changed if held[source_id]], near, nodes)


def _asked(
    conn: Connection, scope_id: UUID, name: LiteralString, **about: list[Any]
) -> Iterable[tuple[Any, ...]]:
    """Send a question about some things, if there are any; its answer is read where it is wanted."""
    return run(conn, name, {"scope_id": scope_id, **about}) if all(about.values()) else ()


def write_titles(conn: Connection, scope_id: UUID, tx: int, titles: Titles) -> None:
    """End the titles that are no longer those of their sources, and write the new ones."""
    end_titles(conn, scope_id, tx, titles.ended)
    rows = [
        (source_id, title.form, title.first_term, pack(title.terms))
        for source_id, forms in titles.changed.items()
        for title in forms
    ]
    if rows:
        named = by_name(("source_id", "form", "first_term", "terms"), rows)
        run(conn, "write_titles", {"scope_id": scope_id, "tx": tx, **named})


def end_titles(conn: Connection, scope_id: UUID, tx: int, sources: Sequence[str]) -> None:
    """End the titles of sources."""
    if sources:
        run(conn, "close_titles", {"scope_id": scope_id, "tx": tx, "sources": list(sources)})


def mentioning(conn: Connection, scope_id: UUID, titles: Titles) -> tuple[set[Pair], int]:
    """Return which current nodes mention the changed titles, and how many are too common to look for."""
    asked: list[tuple[str, Terms, int, int]] = []
    skipped = 0
    for source_id, forms in titles.changed.items():
        for title in forms:
            terms = set(finding(title.terms).tolist())
            rare, *others = sorted(terms, key=lambda term: (titles.nodes.get(term, 0), term))
            if titles.nodes.get(rare, 0) > MAX_TEXTS:
                skipped += 1
            elif rare in titles.nodes:
                asked.append((source_id, title.terms, rare, others[0] if others else rare))
    return _written_in(conn, scope_id, asked), skipped


def mentioned(titles: Titles, texts: Texts) -> set[Pair]:
    """Return which of the texts mention which titles; none mentions those of its own sources."""
    nodes = list(texts.terms)
    found = Mentions(titles.near).found_in(list(texts.terms.values()))
    return {
        (nodes[place], source_id)
        for place, source_id in found
        if source_id not in texts.sources[nodes[place]]
    }


class Edges(NamedTuple):
    """The `mentions` edges that are to be ended and opened."""

    closing: Sequence[EdgeKey]
    opening: Sequence[EdgeDraft]


def change_mentions(
    conn: Connection,
    scope_id: UUID,
    pairs: Collection[Pair],
    *,
    nodes: Collection[str],
    targets: Collection[str],
) -> Edges:
    """Return what makes these pairs all that `nodes` mention, and all that mentions the nodes `targets`."""
    wanted = {(node, source_node_id(source_id)) for node, source_id in pairs}
    held: set[Pair] = set()
    if nodes or targets:
        params = {"scope_id": scope_id, "nodes": sorted(nodes), "targets": sorted(targets)}
        held = {(src, dst) for src, dst in run(conn, "current_mentions", params)}
    closing = [(src, dst, MENTIONS) for src, dst in sorted(held - wanted)]
    return Edges(closing, [EdgeDraft(src, dst, MENTIONS) for src, dst in sorted(wanted - held)])


def write_mentions(conn: Connection, scope_id: UUID, tx: int, edges: Edges) -> None:
    """End and open `mentions` edges."""
    close_edges(conn, scope_id, tx, edges.closing)
    write_edges(conn, scope_id, tx, edges.opening)


def _written_in(conn: Connection, scope_id: UUID, asked: Sequence[tuple[str, Terms, int, int]]) -> set[Pair]:
    """Return which current nodes mention titles, given each with its rarest term and another."""
    if not asked:
        return set()
    rare = Bigints(np.array([row[2] for row in asked], dtype=np.int64))
    other = Bigints(np.array([row[3] for row in asked], dtype=np.int64))
    texts: dict[int, list[tuple[str, Terms]]] = {}
    params = {"scope_id": scope_id, "as_of": OPEN_TX - 1, "rare": rare, "other": other}
    for place, node, terms in run(conn, "holding_both", params):
        texts.setdefault(place, []).append((node, unpack(terms)))
    pairs: set[Pair] = set()
    for place, found in texts.items():
        mentions = Mentions([asked[place][:2]])
        pairs |= {(found[at][0], source) for at, source in mentions.found_in([terms for _, terms in found])}
    return pairs


def sources_of(nodes: Iterable[NodeDraft]) -> dict[str, set[str]]:
    """Return the sources that nodes derive from, by node id."""
    return {node.node_id: {source_id for source_id, _, _ in node.spans} for node in nodes}
