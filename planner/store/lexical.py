"""The lexical index, written in the transaction of what it indexes, under the scope's lock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from planner.errors import MalformedInput
from planner.lexical.documents import Doc
from planner.lexical.packing import Terms, frequencies, pack, unpack
from planner.lexical.terms import ANALYSIS
from planner.store.arrays import Bigints
from planner.store.connect import Connection, by_name, run
from planner.types import OPEN_TX

BUILDING = f"building:{ANALYSIS}"
"""What `scope.lexical` says while an index is built: writers keep it, and nobody reads it yet."""

DOC_BITS = 20
MAX_NODES = 1 << DOC_BITS
"""The nodes of one transaction, each of which gets a number below this."""

DOCS_AT_ONCE = 4_096
"""Node versions that are written by one statement."""


class Row(NamedTuple):
    """A node version of the index: its node, its number, its end, its terms."""

    node_id: str
    doc: int
    tx_to: int
    terms: Doc


class Tally(NamedTuple):
    """Some node versions: how many, how long together, and the terms of each, one after another."""

    nodes: int
    length: int
    terms: Terms


NOTHING = Tally(0, 0, np.zeros(0, dtype=np.int64))


def is_kept(lexical: str | None) -> bool:
    """Say, from `scope.lexical`, whether writers keep the scope's index."""
    return lexical in (ANALYSIS, BUILDING)


def check_count(nodes: int) -> None:
    """Raise MalformedInput where a transaction would open more nodes than it has numbers for."""
    if nodes > MAX_NODES:
        raise MalformedInput(
            f"the input makes {nodes:,} nodes at once; one transaction takes {MAX_NODES:,}: split the input",
            nodes=nodes,
        )


def rows_of(tx: int, docs: Mapping[str, Doc]) -> list[Row]:
    """Return the rows of the nodes that a transaction opens: numbered by id, whatever their order."""
    return [
        Row(node_id, tx << DOC_BITS | place, OPEN_TX, docs[node_id])
        for place, node_id in enumerate(sorted(docs))
    ]


def write_rows(conn: Connection, scope_id: UUID, rows: Sequence[Row]) -> Tally:
    """Write forward rows and their postings; return what those that are current hold, to be counted."""
    current = NOTHING
    for first in range(0, len(rows), DOCS_AT_ONCE):
        some = rows[first : first + DOCS_AT_ONCE]
        whole = [row.terms.whole for row in some]
        run(conn, "write_lexical", {"scope_id": scope_id, **_forward(some, whole)})
        term, place, frequency = frequencies(whole)
        docs, ends, lengths = np.array(
            [(row.doc, row.tx_to, row.terms.length) for row in some], dtype=np.int64
        ).T
        of_each = {"term": term, "doc": docs[place], "frequency": frequency, "length": lengths[place]}
        run(conn, "write_postings", {"scope_id": scope_id, **_bigints(of_each)})
        is_current = ends == OPEN_TX
        current = Tally(
            current.nodes + int(is_current.sum()),
            current.length + int(lengths[is_current].sum()),
            np.concatenate((current.terms, term[is_current[place]])),
        )
    return current


def close_rows(conn: Connection, scope_id: UUID, tx: int, nodes: Collection[str]) -> Tally:
    """End the current forward rows of nodes; return what they held, to be counted down."""
    if not nodes:
        return NOTHING
    closed = run(conn, "close_lexical", {"scope_id": scope_id, "tx": tx, "nodes": sorted(nodes)})
    return _tally([unpack(terms + context) for terms, context in closed.fetchall()])


def count(conn: Connection, scope_id: UUID, came: Tally, went: Tally) -> None:
    """Keep the counts of a scope: of its current node versions, and of each term in them."""
    if not came.nodes and not went.nodes:
        return
    signs = np.repeat([1, -1], [len(came.terms), len(went.terms)])
    terms, place = np.unique(np.concatenate((came.terms, went.terms)), return_inverse=True)
    change = np.bincount(place, weights=signs, minlength=len(terms)).astype(np.int64)
    up, down = change > 0, change < 0
    if up.any():
        raised = _bigints({"term": terms[up], "nodes": change[up]})
        run(conn, "raise_terms", {"scope_id": scope_id, **raised})
    if down.any():
        lowered = _bigints({"term": terms[down], "nodes": -change[down]})
        run(conn, "lower_terms", {"scope_id": scope_id, **lowered})
        run(conn, "drop_terms", {"scope_id": scope_id, "term": lowered["term"]})
    counted = {"nodes": came.nodes - went.nodes, "terms": came.length - went.length}
    run(conn, "count_lexical", {"scope_id": scope_id, **counted})


def delete_postings(conn: Connection, scope_id: UUID, deleted: Iterable[Sequence[Any]]) -> None:
    """Delete the postings of forward rows that are deleted, given as doc, terms and context."""
    rows = list(deleted)
    if rows:
        term, place, _ = frequencies([unpack(terms + context) for _, terms, context in rows])
        docs = np.array([row[0] for row in rows], dtype=np.int64)
        keys = _bigints({"term": term, "doc": docs[place]})
        run(conn, "delete_postings", {"scope_id": scope_id, **keys})


def erase_rows(conn: Connection, scope_id: UUID, nodes: Sequence[str], sources: Sequence[str]) -> None:
    """Delete what the index holds of those versions of nodes that derive from sources; they have ended."""
    for first in range(0, len(nodes), DOCS_AT_ONCE):
        some = {"nodes": list(nodes[first : first + DOCS_AT_ONCE]), "sources": list(sources)}
        delete_postings(conn, scope_id, run(conn, "erase_lexical", {"scope_id": scope_id, **some}).fetchall())


def prune_rows(conn: Connection, scope_id: UUID, nodes: Sequence[str], since: Sequence[int]) -> None:
    """Delete what the index holds of those of these versions of nodes that are gone."""
    for first in range(0, len(nodes), DOCS_AT_ONCE):
        some = slice(first, first + DOCS_AT_ONCE)
        params = {"scope_id": scope_id, "nodes": list(nodes[some]), "since": list(since[some])}
        delete_postings(conn, scope_id, run(conn, "prune_lexical", params).fetchall())


def _forward(rows: Sequence[Row], whole: Sequence[Terms]) -> dict[str, Any]:
    """Return the parameters of `write_lexical`: the sequences in one value, and where each begins."""
    names = ("node_id", "tx_to", "doc", "terms", "context")
    lists = [(r.node_id, r.tx_to, r.doc, len(r.terms.terms), len(r.terms.context)) for r in rows]
    ends = list(accumulate(map(len, whole)))
    return {**by_name(names, lists), "start": [0, *ends[:-1]], "packed": pack(np.concatenate(whole))}


def _bigints(named: Mapping[str, Terms]) -> dict[str, Bigints]:
    return {name: Bigints(values) for name, values in named.items()}


def _tally(whole: Sequence[Terms]) -> Tally:
    return Tally(len(whole), sum(map(len, whole)), frequencies(whole)[0])
