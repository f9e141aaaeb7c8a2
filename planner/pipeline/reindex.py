"""Building a lexical index, read top to bottom: titles, versions of nodes in batches, then the switch.

For scopes that were written before there was one, and for what is missing of one. From the first transaction
on the scope's writers keep the index of what they write; each batch locks them out for as long as it is
written. A run that was killed goes on where it stopped: what has a row is passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg import sql

from planner.engine import Engine
from planner.errors import ConflictingInput
from planner.ingest import scope_id as id_of_scope
from planner.ingest import source_node_id
from planner.lexical.documents import Doc, Reader
from planner.lexical.terms import ANALYSIS
from planner.recall.frame import read_state
from planner.store.connect import Connection, run
from planner.store.lexical import BUILDING, NOTHING, Row, count, is_kept, write_rows
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
from planner.store.models import halt_writers
from planner.store.node_texts import NodeText, Version, node_texts
from planner.store.queries import compose, query
from planner.store.retry import retried
from planner.store.write import MANY_ROWS, Entry, next_tx, write_entry
from planner.types import OPEN_TX

BATCH = 512
"""Versions of nodes a transaction."""

UNHURRIED = {"statement_timeout": 0}
"""For statements that look through a whole scope, or clear its index."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """A scope's lexical index: how many versions of nodes this run added, and the transaction that switched.

    `tx` is None where the index was there, whole, before.
    """

    scope: str
    tx: int | None
    analysis: str
    added: int = 0
    mentions: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the index as JSON data."""
        return asdict(self)


def build_lexical(engine: Engine, scope: str, *, progress: Progress | None = None) -> LexicalIndex:
    """Build what is missing of the scope's lexical index, beside its writers, and let it be used.

    `progress` is told how many versions of nodes are done, and of how many. Raises UnknownScope,
    ConflictingInput, IntegrityError, StoreError; what was written by then stays, for the next run.
    """
    scope_id = id_of_scope(scope)
    total = _missing(engine, scope, scope_id)
    if total is None:
        return LexicalIndex(scope, None, ANALYSIS)
    mentions = _begin(engine, scope, scope_id)
    added, after = 0, ("", 0)
    while versions := _look(engine, scope_id, after):
        docs = _analyse(engine, scope_id, versions)
        rows, edges = _write_batch(engine, scope, scope_id, docs)
        added, mentions, after = added + rows, mentions + edges, versions[-1]
        if progress is not None:
            progress(added, max(added, total))
    return _switch(engine, scope, scope_id, added, mentions)


@retried
def _missing(engine: Engine, scope: str, scope_id: UUID) -> int | None:
    """Return how many versions are not in the index; None where it is whole. Raises UnknownScope."""
    with engine.store.scoped(scope_id, "reader", snapshot=True, settings=UNHURRIED) as conn:
        read_state(conn, scope, scope_id, None)
        lexical = _lexical(conn, scope_id)
        statement = unindexed("unindexed_count")
        row = run(conn, statement, {"scope_id": scope_id}).fetchone()
    assert row is not None
    return None if lexical == ANALYSIS and not row[0] else int(row[0])


@retried
def _begin(engine: Engine, scope: str, scope_id: UUID) -> int:
    """Let writers keep the index from now on, and write the titles that there are; return their mentions."""
    with engine.store.scoped(scope_id, "writer", settings={**MANY_ROWS, **UNHURRIED}) as conn:
        halt_writers(conn, scope_id, scope)
        lexical = _lexical(conn, scope_id)
        if lexical == BUILDING:  # another run has begun
            return 0
        tx = next_tx(conn, scope_id, scope, engine.clock())
        write_entry(conn, scope_id, tx, Entry(engine.actor, "index", engine.clock(), {"lexical": BUILDING}))
        if lexical != ANALYSIS:
            run(conn, "clear_lexical", {"scope_id": scope_id})
            run(conn, "empty_lexical", {"scope_id": scope_id})
        run(conn, "mark_lexical", {"scope_id": scope_id, "lexical": BUILDING})
        titled: dict[str, str | None] = dict(run(conn, "titled_sources", {"scope_id": scope_id}).fetchall())
        titles = read_titles(conn, scope_id, titled, Texts({}, {}), known=titled)
        write_titles(conn, scope_id, tx, titles)
        pairs, _ = mentioning(conn, scope_id, titles)
        titled_nodes = [source_node_id(source_id) for source_id in titles.changed]
        edges = change_mentions(conn, scope_id, pairs, nodes=(), targets=titled_nodes)
        write_mentions(conn, scope_id, tx, edges)
        return len(edges.opening)


@retried
def _look(engine: Engine, scope_id: UUID, after: Version) -> list[Version]:
    """Return the next versions that are not in the index."""
    node_id, tx_from = after
    params = {"scope_id": scope_id, "node_id": node_id, "tx_from": tx_from, "limit": BATCH}
    with engine.store.scoped(scope_id, "reader", settings=UNHURRIED) as conn:
        statement = unindexed("unindexed_versions")
        return [(node_id, tx_from) for node_id, tx_from in run(conn, statement, params)]


@retried
def _analyse(
    engine: Engine, scope_id: UUID, versions: Sequence[Version]
) -> dict[Version, tuple[NodeText, Doc]]:
    reader = Reader(engine.settings.kind_priors)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        said = node_texts(conn, scope_id, versions)
    return {text.version: (text, reader.document(text.node, text.texts, text.settings)) for text in said}


@retried
def _write_batch(
    engine: Engine, scope: str, scope_id: UUID, docs: Mapping[Version, tuple[NodeText, Doc]]
) -> tuple[int, int]:
    """Write the rows of versions that have none yet; return how many, and how many mentions they make."""
    params: dict[str, Any] = {"scope_id": scope_id, "nodes": [], "since": []}
    for node_id, tx_from in docs:
        params["nodes"].append(node_id)
        params["since"].append(tx_from)
    with engine.store.scoped(scope_id, "writer", settings=MANY_ROWS) as conn:
        tx = halt_writers(conn, scope_id, scope)
        _check_going_on(conn, scope, scope_id)
        rows: list[Row] = []
        placed: Counter[int] = Counter()
        still = run(conn, unindexed("unindexed_still"), params).fetchall()
        for node_id, tx_from, tx_to, doc in still:
            rows.append(Row(node_id, doc + placed[tx_from], tx_to, docs[node_id, tx_from][1]))
            placed[tx_from] += 1
        count(conn, scope_id, write_rows(conn, scope_id, rows), NOTHING)
        current = {node: docs[node, tx_from] for node, tx_from, tx_to, _ in still if tx_to == OPEN_TX}
        terms = {node: doc.terms for node, (_, doc) in current.items()}
        texts = Texts(terms, sources_of(text.node for text, _ in current.values()))
        pairs = mentioned(read_titles(conn, scope_id, {}, texts, known=()), texts)
        edges = change_mentions(conn, scope_id, pairs, nodes=current, targets=())
        write_mentions(conn, scope_id, tx, edges)
        return len(rows), len(edges.opening)


@retried
def _switch(engine: Engine, scope: str, scope_id: UUID, added: int, mentions: int) -> LexicalIndex:
    """Let the index be used."""
    with engine.store.scoped(scope_id, "writer") as conn:
        halt_writers(conn, scope_id, scope)
        _check_going_on(conn, scope, scope_id)
        done = LexicalIndex(scope, None, ANALYSIS, added, mentions)
        if _lexical(conn, scope_id) == ANALYSIS:  # another run was first
            return done
        tx = next_tx(conn, scope_id, scope, engine.clock())
        write_entry(conn, scope_id, tx, Entry(engine.actor, "index", engine.clock(), {"lexical": ANALYSIS}))
        run(conn, "mark_lexical", {"scope_id": scope_id, "lexical": ANALYSIS})
        return LexicalIndex(scope, tx, ANALYSIS, added, mentions)


def _check_going_on(conn: Connection, scope: str, scope_id: UUID) -> None:
    """Raise ConflictingInput where the index was given up meanwhile: writers have not kept it since."""
    if not is_kept(_lexical(conn, scope_id)):
        raise ConflictingInput(f"the index of {scope!r} was given up while it was built; run it again")


def unindexed(name: LiteralString) -> sql.Composed:
    """Return a statement about versions that are not in the index."""
    return compose(name, unindexed=compose("unindexed", worded=query("worded")))


def _lexical(conn: Connection, scope_id: UUID) -> str | None:
    row = run(conn, "lexical_state", {"scope_id": scope_id}).fetchone()
    return row[0] if row else None
