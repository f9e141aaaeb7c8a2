"""Tuning as the owner: statistics after a load, and a scope's own vector index."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from psycopg import sql

from planner.engine import Engine
from planner.errors import RequestError
from planner.ingest import scope_id as id_of_scope
from planner.recall.frame import read_state
from planner.recall.semantic import index_type
from planner.store.connect import run
from planner.store.queries import compose
from planner.store.retry import retried


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """A scope's HNSW index: its name, how many live nodes it serves, and whether this call built it."""

    name: str
    live_nodes: int
    built: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the index as JSON data."""
        return asdict(self)


@retried
def refresh_statistics(engine: Engine) -> tuple[str, ...]:
    """Analyse the tables whose statistics are far behind what was written; return their names."""
    with engine.store.maintenance() as conn:
        stale = [row[0] for row in run(conn, "stale_tables").fetchall()]
        if stale:
            tables = sql.SQL(", ").join(sql.Identifier("planner", name) for name in stale)
            run(conn, compose("analyze", tables=tables))
    return tuple(stale)


@retried
def build_index(engine: Engine, scope: str) -> VectorIndex:
    """Build the scope's own HNSW index over its current vectors, without locking out its writers.

    Raises UnknownScope, and RequestError where the scope has no vectors or too many dimensions to index.
    """
    scope_id = id_of_scope(scope)
    with engine.store.scoped(scope_id, "reader") as conn:
        state = read_state(conn, scope, scope_id, None)
    if state.model is None:
        raise RequestError(f"scope {scope!r} has no vectors to index", scope=scope)
    kind = index_type(state.model.dimensions)
    if not kind:
        raise RequestError(
            f"vectors of {state.model.dimensions} dimensions cannot be indexed (4,000 at most); "
            "the scope is searched exactly",
            scope=scope,
        )
    name = f"embedding_hnsw_{scope_id.hex}_{state.model.model_id}"
    with engine.store.upkeep() as conn:
        found = run(conn, "vector_index_state", {"name": name}).fetchone()
        is_there = found is not None and found[0]
        if not is_there:
            run(conn, compose("drop_vector_index", name=sql.Identifier(name)))
            statement = compose(
                "create_vector_index",
                name=sql.Identifier(name),
                kind=sql.Identifier(kind),
                dimensions=sql.Literal(state.model.dimensions),
                operators=sql.Identifier(f"{kind}_cosine_ops"),
                scope_id=sql.Literal(scope_id),
                model_id=sql.Literal(state.model.model_id),
            )
            run(conn, statement)
        # Also where it is there: whoever built it may have been cut off before this.
        run(conn, compose("sample_no_vectors", name=sql.Identifier(name)))
    return VectorIndex(name, state.live_nodes, built=not is_there)
