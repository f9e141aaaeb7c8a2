"""Reembed, read top to bottom: find what has no vector of the new model, embed it in batches, then switch.

Each batch is a short transaction, so that a run that was killed goes on where it stopped. The scope's model
and its vectors serve until the switch, one ledger transaction under the scope's lock; what others wrote
meanwhile is embedded in further rounds, and its last remnant inside the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from planner.engine import Engine
from planner.errors import ConflictingInput, RequestError
from planner.hashing import text_hash
from planner.ingest import embed_text
from planner.ingest import scope_id as id_of_scope
from planner.ports import Embedder
from planner.recall.frame import read_state
from planner.recall.question import unit_vectors
from planner.store.connect import Connection, Store, run
from planner.store.local import set_local
from planner.store.models import (
    MadeVector,
    change_model,
    count_pending,
    halt_writers,
    known_model,
    pending_nodes,
    write_made,
)
from planner.store.node_texts import node_texts
from planner.store.retry import retried
from planner.store.write import MANY_ROWS, Entry, next_tx, write_entry

DEFAULT_BATCH, MAX_BATCH = 256, 10_000
"""Nodes a transaction."""

LOOK = 50_000
"""Pending nodes that are looked for at a time."""

CATCH_UP = 64
"""How many nodes may be embedded while the scope's writers wait."""

MAX_ROUNDS = 10
"""How often the scope is looked through before its writers are too busy for a switch."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Reembedded:
    """A scope's move to another model: `tx` is the switch, None where the scope used the model already.

    `vectors` counts those that this run wrote, `without` the nodes whose text the model gives no direction.
    Where `index_left`, the scope had a vector index of its own, which does not serve the new vectors.
    """

    scope: str
    tx: int | None
    model: str
    revision: str
    dimensions: int
    previous: str | None
    vectors: int = 0
    without: int = 0
    index_left: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the move as JSON data."""
        return asdict(self)


_Node = tuple[str, int]
"""One version of a node: its id, and the transaction that it is from."""


@dataclass(frozen=True, slots=True)
class _Text:
    """What a node is embedded by, and whether the new model has embedded that text before."""

    node: _Node
    text: str
    hashed: bytes
    known: bool


@dataclass
class _Work:
    """One run: what it is about, how much it has written, and the nodes whose vector is zero."""

    engine: Engine
    scope: str
    scope_id: UUID
    embedder: Embedder
    model_id: int
    batch: int
    vectors: int = 0
    barren: set[_Node] = field(default_factory=set)

    @property
    def store(self) -> Store:
        """The store of the run."""
        return self.engine.store


class _Behind(Exception):
    """Other writers have left more to embed than may be done while they wait."""


def reembed(
    engine: Engine,
    scope: str,
    embedder: Embedder,
    *,
    batch: int = DEFAULT_BATCH,
    progress: Progress | None = None,
) -> Reembedded:
    """Embed all current nodes by `embedder`, `batch` nodes a transaction, then let the scope use the vectors.

    Plans as of before the switch use the model of then. `progress` is told how many nodes are done, and of
    how many. Raises UnknownScope, RequestError, EmbedderError, StoreError, and ConflictingInput where other
    writers are too busy; the vectors that were made by then are kept for the next run.
    """
    if not 1 <= batch <= MAX_BATCH:
        raise RequestError(f"batch = {batch}: a batch has 1 to {MAX_BATCH} nodes", field="batch")
    work = _begin(engine, scope, embedder, batch)
    for _ in range(MAX_ROUNDS):
        _round(work, progress)
        try:
            return _switch(work)
        except _Behind:
            continue
    raise ConflictingInput(
        f"other writers of {scope!r} wrote more than was embedded, {MAX_ROUNDS} times over; the vectors that "
        "were made are kept: run `planner reembed` again when they are less busy",
        scope=scope,
    )


@retried
def _begin(engine: Engine, scope: str, embedder: Embedder, batch: int) -> _Work:
    """Make the new model known. Raises UnknownScope."""
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader") as conn:
        read_state(conn, scope, scope_id, None)
    with engine.store.scoped(scope_id, "writer") as conn:
        model_id = known_model(conn, embedder.name, embedder.revision, embedder.dimensions)
    return _Work(engine, scope, scope_id, embedder, model_id, batch)


def _round(work: _Work, progress: Progress | None) -> None:
    """Look through the scope once and embed what is pending; no lock is held while the embedder works."""
    if _model_in_use(work) == work.model_id:
        return
    after, done, total = "", 0, _total(work) if progress is not None else 0
    while True:
        nodes = _look(work, after)
        waiting = [node for node in nodes if node not in work.barren]
        for first in range(0, len(waiting), work.batch):
            batch = waiting[first : first + work.batch]
            made = _embed(work, _read_batch(work, batch))
            work.vectors += _write_batch(work, made)
            done += len(batch)
            if progress is not None:
                progress(done, max(done, total))
        if len(nodes) < LOOK:
            return
        after = nodes[-1][0]


@retried
def _model_in_use(work: _Work) -> int | None:
    with work.store.scoped(work.scope_id, "reader") as conn:
        row = run(conn, "scope_model", {"scope_id": work.scope_id}).fetchone()
    return row[0] if row else None


@retried
def _total(work: _Work) -> int:
    with work.store.scoped(work.scope_id, "reader") as conn:
        return count_pending(conn, work.scope_id, work.model_id)


@retried
def _look(work: _Work, after: str) -> list[_Node]:
    with work.store.scoped(work.scope_id, "reader") as conn:
        return pending_nodes(conn, work.scope_id, work.model_id, after=after, limit=LOOK)


@retried
def _read_batch(work: _Work, nodes: Sequence[_Node]) -> list[_Text]:
    with work.store.scoped(work.scope_id, "reader", snapshot=True) as conn:
        return _texts(conn, work, nodes)


@retried
def _write_batch(work: _Work, made: Sequence[MadeVector]) -> int:
    with work.store.scoped(work.scope_id, "writer", settings=MANY_ROWS) as conn:
        tx = halt_writers(conn, work.scope_id, work.scope)
        return write_made(conn, work.scope_id, work.model_id, tx, made)


@retried
def _switch(work: _Work) -> Reembedded:
    """Let the scope use the new model from its next transaction on. Raises _Behind, with nothing written."""
    engine, new = work.engine, work.embedder
    with work.store.scoped(work.scope_id, "writer") as conn:
        halt_writers(conn, work.scope_id, work.scope)
        before = read_state(conn, work.scope, work.scope_id, None)
        described = (new.name, new.revision, new.dimensions, before.model.name if before.model else None)
        if before.model is not None and before.model.model_id == work.model_id:
            return Reembedded(work.scope, None, *described)
        made = _embed(work, _texts(conn, work, _remnant(conn, work)))
        tx = next_tx(conn, work.scope_id, work.scope, engine.clock())
        vectors = work.vectors + write_made(conn, work.scope_id, work.model_id, tx, made)
        done = Reembedded(work.scope, tx, *described, vectors, len(work.barren), before.indexed)
        detail = {k: v for k, v in done.to_dict().items() if k not in ("scope", "tx", "index_left")}
        write_entry(conn, work.scope_id, tx, Entry(engine.actor, "reembed", engine.clock(), detail))
        set_local(conn, {"statement_timeout": 0})  # closing the vectors of a large scope takes its time
        old = before.model.model_id if before.model else None
        change_model(conn, work.scope_id, tx, old, work.model_id)
    return done


def _remnant(conn: Connection, work: _Work) -> list[_Node]:
    """Return what other writers have left since the last look. Raises _Behind where it is much."""
    remnant: list[_Node] = []
    after = ""
    while True:
        nodes = pending_nodes(conn, work.scope_id, work.model_id, after=after, limit=LOOK)
        remnant += [node for node in nodes if node not in work.barren]
        if len(remnant) > CATCH_UP:
            raise _Behind
        if len(nodes) < LOOK:
            return remnant
        after = nodes[-1][0]


def _texts(conn: Connection, work: _Work, nodes: Sequence[_Node]) -> list[_Text]:
    """Read what nodes are embedded by, as ingest would embed them. Raises IntegrityError."""
    priors = work.engine.settings.kind_priors
    found: dict[_Node, str] = dict.fromkeys(nodes, "")
    for said in node_texts(conn, work.scope_id, nodes):
        found[said.version] = embed_text(said.node, said.texts, priors)
    hashes = {text: text_hash(text.encode()) for text in found.values() if text}
    asked = {"scope_id": work.scope_id, "model_id": work.model_id, "hashes": list(hashes.values())}
    known = {bytes(row[0]) for row in run(conn, "reembed_known", asked)}
    return [
        _Text(node, text, hashes.get(text, b""), hashes.get(text) in known) for node, text in found.items()
    ]


def _embed(work: _Work, texts: Sequence[_Text]) -> list[MadeVector]:
    """Embed each text once; one that is known has a vector already, and one without direction gets none."""
    unknown = list(dict.fromkeys(text.text for text in texts if not text.known and text.text))
    rows: dict[str, list[float]] = {}
    if unknown:
        unit, zero = unit_vectors(work.embedder, unknown)
        made = zip(unknown, unit.tolist(), zero.tolist(), strict=True)
        rows = {text: row for text, row, is_zero in made if not is_zero}
    work.barren |= {text.node for text in texts if not text.known and text.text not in rows}
    return [
        MadeVector(*text.node, text.hashed, rows.get(text.text))
        for text in texts
        if text.known or text.text in rows
    ]
