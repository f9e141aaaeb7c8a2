"""Ingest, read top to bottom: parse, compare with what is current, embed and analyse, then one transaction.

Parsing, embedding and analysis happen before the scope is locked. If another writer came in between, the
comparison is made again inside the lock; only where that asks for texts that have no vector yet does it all
start over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from uuid import UUID

from planner.engine import Engine
from planner.errors import ConflictingInput, MalformedInput
from planner.hashing import text_hash
from planner.ingest import embed_text, span_texts
from planner.ingest import scope_id as id_of_scope
from planner.lexical.documents import Reader
from planner.pipeline.indexing import Indexed, analysed, write_index
from planner.pipeline.once import Once, written_before
from planner.ports import Embedder
from planner.recall.frame import Model
from planner.recall.question import check_model, unit_vectors
from planner.recall.score import normalise
from planner.store.changes import Changes, Current, changes
from planner.store.connect import Connection, run
from planner.store.models import known_model
from planner.store.retry import attempts
from planner.store.write import (
    MANY_ROWS,
    Entry,
    NodeVector,
    check_edge_ends,
    next_turn,
    read_current,
    write_changes,
    write_embeddings,
    write_entry,
)
from planner.types import Batch, IngestedSource, NodeDraft

MAX_ROUNDS = 10
"""How often an ingest starts over because other writers keep changing what it compares with."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one batch became: its sources, and the rows written by sort."""

    sources: tuple[IngestedSource, ...]
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The vectors of a set of changes: unit rows by text hash, and which text each node is embedded by."""

    by_hash: Mapping[bytes, tuple[float, ...] | None]
    hash_of: Mapping[str, bytes]
    current: frozenset[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class _Space:
    """The model whose vectors a batch gets; without an embedder the input brings them itself."""

    name: str
    revision: str
    dimensions: int
    embedder: Embedder | None


_NO_SPACE = _Space("", "", 0, None)
"""That of a batch with nothing to embed, such as edges alone: it asks for no embedder."""


class _StartOver(Exception):
    """Another writer came first, and what it wrote asks for vectors that were not made."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A batch, the part of the scope that it meets, and what it changes there."""

    batch: Batch
    current: Current
    changes: Changes


Compare = Callable[[Connection, UUID, int], Compared]
"""Compares an input with a scope at its newest transaction; it may be asked again inside the lock."""


def ingest(
    engine: Engine,
    scope: str,
    batch: Batch,
    *,
    origin: Mapping[str, str] = MappingProxyType({}),
    once: Once | None = None,
) -> Ingested:
    """Write a parsed batch as one ledger transaction; nothing where nothing changed.

    `origin` is for the ledger: the file that it came from and its folder; `once` the key of a caller who may
    ask again. Raises IngestError, EmbedderError or StoreError, and has written nothing then.
    """

    def compare(conn: Connection, scope_id: UUID, last_tx: int) -> Compared:
        current = read_current(conn, scope_id, batch, last_tx=last_tx)
        return Compared(batch, current, changes(batch, current))

    check_kinds(engine, batch)
    return write(engine, scope, compare, "ingest", origin=origin, once=once)


def write(
    engine: Engine,
    scope: str,
    compare: Compare,
    action: str,
    *,
    origin: Mapping[str, str] = MappingProxyType({}),
    once: Once | None = None,
    repeatable: bool = True,
) -> Ingested:
    """Write what `compare` finds changed as one ledger transaction of the given action.

    What is `repeatable` compares equal once it is written, so that it is tried again also where it may have
    been committed; so is what is to happen `once`. Raises as `ingest` does.
    """
    for _ in range(MAX_ROUNDS):
        try:
            attempted = attempts(engine.store, repeatable=repeatable or once is not None)
            return attempted(_attempt, engine, scope, compare, action, origin, once)
        except _StartOver:
            continue
    raise ConflictingInput(f"other writers kept changing {scope!r} in {MAX_ROUNDS} attempts; try again later")


def _attempt(
    engine: Engine,
    scope: str,
    compare: Compare,
    action: str,
    origin: Mapping[str, str],
    once: Once | None,
) -> Ingested:
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        last_tx, made_at = run(conn, "scope_tx", {"scope_id": scope_id}).fetchone() or (0, None)
        model = _model_of(conn, scope_id)
        compared = compare(conn, scope_id, last_tx)
        before = written_before(conn, scope_id, once, _ids(compared.batch))
    batch, current, found = compared.batch, compared.current, compared.changes
    if before is not None or not found:
        return _unchanged(batch, current, before or {})
    reader = Reader(engine.settings.kind_priors)
    docs = analysed(reader, batch, found)
    space = _space(engine, batch, found, model)
    vectors = _embed(engine, scope_id, batch, found, model, space)
    with engine.store.scoped(scope_id, "writer", settings=MANY_ROWS) as conn:
        turn = next_turn(conn, scope_id, scope, engine.clock())
        tx = turn.tx
        if tx != last_tx + 1 or made_at not in (None, turn.made_at):
            compared = compare(conn, scope_id, tx - 1)
            batch, current, found = compared.batch, compared.current, compared.changes
            vectors = _given(batch, found) if batch.embeddings else vectors
            is_covered = bool(batch.embeddings) or _is_covered(conn, scope_id, found, vectors, model)
            is_written = written_before(conn, scope_id, once, _ids(batch)) is not None
            if is_written or not found or not is_covered or _model_of(conn, scope_id) != model:
                raise _StartOver
            docs = analysed(reader, batch, found)
        check_edge_ends(conn, scope_id, batch)
        kept = once.to_detail() if once else {}
        entry = Entry(engine.actor, action, engine.clock(), {**_detail(found), **origin, **kept})
        with conn.pipeline():  # what is longest in the server first: the rest is made ready meanwhile
            write_entry(conn, scope_id, tx, entry)
            indexed = write_index(conn, scope_id, turn, found, docs, current.versions)
            write_changes(conn, scope_id, tx, engine.actor, found, current.versions)
            embedded = _write_vectors(conn, scope_id, tx, found, vectors, model, space)
    return _report(batch, found, current, tx, embedded, indexed)


def _model_of(conn: Connection, scope_id: UUID) -> Model | None:
    row = run(conn, "scope_model", {"scope_id": scope_id}).fetchone()
    return Model(*row) if row else None


def _space(engine: Engine, batch: Batch, found: Changes, model: Model | None) -> _Space:
    """Return the space of the batch's vectors. Raises where it is not the scope's."""
    if not batch.embeddings:
        if not any(node.spans for node in found.opened):
            return _NO_SPACE
        embedder = engine.embedder()
        if model is not None:
            check_model(embedder, model)
        return _Space(embedder.name, embedder.revision, embedder.dimensions, embedder)
    name = batch.embedding_model or ""
    dimensions = len(next(iter(batch.embeddings.values())))
    if model is None:
        return _Space(name, "", dimensions, None)
    if (model.name, model.dimensions) != (name, dimensions):
        raise ConflictingInput(
            f"the input brings vectors of {name!r} ({dimensions} dimensions), this scope uses "
            f"{model.name!r} ({model.dimensions}); a scope has one model at a time",
            scope_model=model.name,
        )
    return _Space(model.name, model.revision, model.dimensions, None)


def _embed(
    engine: Engine,
    scope_id: UUID,
    batch: Batch,
    found: Changes,
    model: Model | None,
    space: _Space,
) -> _Vectors:
    """Make the vectors of the opened nodes; a text that the scope has embedded before is left alone."""
    if space.embedder is None:
        return _given(batch, found)
    texts = _texts(engine, batch, found.opened)
    hash_of = {node_id: text_hash(text.encode()) for node_id, text in texts.items()}
    by_text = {hashed: texts[node_id] for node_id, hashed in hash_of.items()}
    known: dict[bytes, list[tuple[str, bool]]] = {}
    if model is not None:
        params = {"scope_id": scope_id, "model_id": model.model_id, "hashes": list(by_text)}
        with engine.store.scoped(scope_id, "reader") as conn:
            for node_id, hashed, is_current in run(conn, "embedded_hashes", params):
                known.setdefault(bytes(hashed), []).append((node_id, is_current))
    missing = [hashed for hashed in by_text if hashed not in known]
    by_hash: dict[bytes, tuple[float, ...] | None] = dict.fromkeys(known)
    if missing:
        by_hash |= _unit_rows(space.embedder, missing, [by_text[hashed] for hashed in missing])
    current = frozenset(
        (node, hashed) for hashed, held in known.items() for node, is_current in held if is_current
    )
    return _Vectors(by_hash, hash_of, current)


def _unit_rows(embedder: Embedder, hashes: list[bytes], texts: list[str]) -> dict[bytes, tuple[float, ...]]:
    """Embed texts and normalise at the store's door; a text whose vector is zero gets no row."""
    unit, zero = unit_vectors(embedder, texts)
    return {h: tuple(row) for h, row, is_zero in zip(hashes, unit.tolist(), zero, strict=True) if not is_zero}


def _given(batch: Batch, found: Changes) -> _Vectors:
    opened = {node.node_id for node in found.opened}
    ids = [node_id for node_id in batch.embeddings if node_id in opened]
    unit, zero = normalise([batch.embeddings[node_id] for node_id in ids] or [[0.0]])
    rows = {n: tuple(row) for n, row, is_zero in zip(ids, unit.tolist(), zero, strict=False) if not is_zero}
    hash_of = {node_id: text_hash(repr(row).encode()) for node_id, row in rows.items()}
    return _Vectors({hash_of[n]: row for n, row in rows.items()}, hash_of, frozenset())


def _texts(engine: Engine, batch: Batch, nodes: tuple[NodeDraft, ...]) -> dict[str, str]:
    texts = span_texts(batch)
    return {n.node_id: embed_text(n, texts, engine.settings.kind_priors) for n in nodes if n.spans}


def _is_covered(
    conn: Connection, scope_id: UUID, found: Changes, vectors: _Vectors, model: Model | None
) -> bool:
    """Say whether every opened node has its vector, those included that the store had: one may be erased."""
    if not all(node.node_id in vectors.hash_of for node in found.opened if node.spans):
        return False
    left = [hashed for hashed, row in vectors.by_hash.items() if row is None]
    if model is None or not left:
        return True
    params = {"scope_id": scope_id, "model_id": model.model_id, "hashes": left}
    held = run(conn, "embedded_hashes", params).fetchall()
    current = {(node_id, bytes(hashed)) for node_id, hashed, is_current in held if is_current}
    return set(left) <= {bytes(hashed) for _, hashed, _ in held} and vectors.current <= current


def _write_vectors(
    conn: Connection,
    scope_id: UUID,
    tx: int,
    found: Changes,
    vectors: _Vectors,
    model: Model | None,
    space: _Space,
) -> int:
    wanted = [(n.node_id, vectors.hash_of[n.node_id]) for n in found.opened if n.node_id in vectors.hash_of]
    rows = [
        NodeVector(node_id, hashed, vectors.by_hash[hashed])
        for node_id, hashed in wanted
        if hashed in vectors.by_hash and (node_id, hashed) not in vectors.current
    ]
    kept = {node_id for node_id, hashed in wanted if (node_id, hashed) in vectors.current}
    closing = sorted(found.gone | (found.replaced - kept))
    model_id = model.model_id if model else _adopt(conn, scope_id, tx, space) if rows else 0
    write_embeddings(conn, scope_id, tx, model_id, rows, closing)
    return len(rows)


def _adopt(conn: Connection, scope_id: UUID, tx: int, space: _Space) -> int:
    """Make the scope's first model known, and let the scope use it from this transaction on."""
    model_id = known_model(conn, space.name, space.revision, space.dimensions)
    run(conn, "adopt_model", {"scope_id": scope_id, "model_id": model_id, "tx": tx})
    return model_id


def check_kinds(engine: Engine, batch: Batch) -> None:
    """Raise MalformedInput where a span has a kind that selection cannot weigh."""
    priors = engine.settings.kind_priors
    for source in batch.sources:
        for span in source.spans:
            if span.kind not in priors:
                raise MalformedInput(
                    f"{source.source_id}: span kind {span.kind!r} has no prior; use one of "
                    f"{', '.join(sorted(priors))}, or add it to [planner.kind_priors]",
                    source_id=source.source_id,
                )


def _detail(found: Changes) -> dict[str, Any]:
    """Return what the ledger says of the changes: ids and counts, never text."""
    return {
        "sources": [s.source_id for s in found.sources],
        "nodes_opened": len(found.opened),
        "nodes_closed": len(found.gone | found.replaced),
        "edges_opened": len(found.edges),
        "edges_closed": len(found.closed_edges),
    }


def _ids(batch: Batch) -> list[str]:
    return [source.source_id for source in batch.sources]


def _unchanged(batch: Batch, current: Current, before: Mapping[str, int]) -> Ingested:
    """Return that nothing was written: what is there is the newest, or what was written `before`."""
    held = {source_id: version.version_tx for source_id, version in current.versions.items()} | dict(before)
    return Ingested(
        tuple(
            IngestedSource(s.source_id, "unchanged", held[s.source_id], len(s.spans))
            for s in batch.sources
            if s.source_id in held
        )
    )


def _report(
    batch: Batch, found: Changes, current: Current, tx: int, embedded: int, indexed: Indexed
) -> Ingested:
    changed = {source.source_id for source in found.sources}
    sources = []
    for source in batch.sources:
        held = current.versions.get(source.source_id)
        status = "new" if held is None else "changed" if source.source_id in changed else "unchanged"
        version_tx = tx if source.source_id in changed or held is None else held.version_tx
        sources.append(IngestedSource(source.source_id, status, version_tx, len(source.spans)))  # type: ignore[arg-type]
    counts = {
        "versions": len(found.sources),
        "spans": sum(len(source.spans) for source in found.sources),
        "nodes": len(found.opened),
        "edges": len(found.edges),
        "embeddings": embedded,
        **{name: number for name, number in indexed._asdict().items() if number},
    }
    return Ingested(tuple(sources), counts)
