"""How PostgreSQL reads for a delivery: by key, in a constant number of statements, large texts in slices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql
from psycopg_pool import ConnectionPool

from planner import Planner, Settings
from planner.embedders import CallableEmbedder
from planner.ingest import scope_id
from planner.ingest.media import IMPORT
from planner.store.shelf import ScopeShelf
from planner.types import SpanRef
from tests.integration.graph import Connection
from tests.integration.test_query_plans import by_scope_alone, flattened, seq_scans

SCOPE = "large"
PARAGRAPHS, TURNS, SOURCES = 25_000, 3_000, 2_000
PARAGRAPH = 400
"""Bytes of each paragraph of a record of 10 MB, with the blank line behind it."""

BUFFERS_OF_A_LOOK_UP = 12
"""Of a slice: two indexes and their tables, of some levels each, and three pages of the body."""


@dataclass
class Reader:
    """A planner on one connection, and how PostgreSQL ran each statement that a shelf sent."""

    planner: Planner
    conn: Connection
    plans: list[dict[str, Any]] = field(default_factory=list)

    def read(self, refs: Sequence[SpanRef], neighbours: int | None) -> int:
        """Read documents and their bytes; return the number of passages."""
        self.plans.clear()
        identity = scope_id(SCOPE)
        with self.planner.engine.store.scoped(identity, "reader", snapshot=True) as conn:
            shelf = ScopeShelf(conn, identity, 10**6)
            found = shelf.documents(refs, neighbours).values()
            passages = [passage.ref for document in found for passage in document.passages]
            assert None not in shelf.read(passages)
        return len(passages)

    @property
    def buffers(self) -> int:
        """The pages that the statements asked for, wherever they were."""
        return sum(map(buffers, self.plans))

    def spans(self, source_id: str) -> list[SpanRef]:
        rows = self.conn.execute(
            "SELECT source_id, version_tx, span_start, span_end FROM planner.span"
            " WHERE scope_id = %s AND source_id = %s ORDER BY version_tx, span_start",
            (scope_id(SCOPE), source_id),
        )
        return [SpanRef(*row) for row in rows]


def buffers(plan: Mapping[str, Any]) -> int:
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@pytest.fixture(scope="module")
def reader(module_database_url: str) -> Iterator[Reader]:
    plans: list[dict[str, Any]] = []

    class Explaining(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            text = query.as_string(self) if isinstance(query, sql.Composable) else str(query)
            if "planner." in text and text.startswith(("SELECT", "WITH")):
                explain = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ")
                super().execute(explain + query, params, **options)
                row: Any = self.fetchone()
                plans.append(row[0][0]["Plan"])
            return super().execute(query, params, **options)

    embedder = CallableEmbedder("one", 2, lambda texts: np.array([[1.0, 0.0]] * len(texts)))
    parts: dict[str, Any] = {"settings": Settings(max_frac_per_source=1.0), "embedder": embedder}
    kwargs = {"autocommit": True, "cursor_factory": Explaining}
    with (
        Planner.connect(module_database_url, **parts) as loader,
        ConnectionPool(module_database_url, min_size=1, max_size=1, kwargs=kwargs, open=True) as pool,
        psycopg.connect(module_database_url, autocommit=True) as conn,
    ):
        _load(loader)
        yield Reader(Planner.from_pool(pool, **parts), conn, plans)


def _load(planner: Planner) -> None:
    record = "\n\n".join(f"Paragraph {i:05} ".ljust(PARAGRAPH - 2, "x") for i in range(PARAGRAPHS))
    assert len(record) > 9_999_000
    planner.ingest_text(SCOPE, "record.txt", record)
    planner.ingest_conversation(
        SCOPE, "talk", [{"content": f"Turn {i}.", "id": f"{i}"} for i in range(TURNS)]
    )
    for i in range(50):
        planner.append(SCOPE, "grown", [{"content": f"Turn {i}."}])
    lines = [
        {
            "record": "source",
            "source_id": f"m{i:04}",
            "text": f"Turn {i}.",
            "conversation_id": f"c{i % 100}",
            "position": i,
        }
        for i in range(SOURCES)
    ]
    planner.ingest_text(SCOPE, "c.jsonl", "\n".join(map(json.dumps, lines)), media_type=IMPORT)
    planner.derive(SCOPE, "All of it.", [SpanRef("m0000", 53, 0, 7)], source_id="sum")


HITS: Mapping[str, tuple[str, int]] = {
    "of a record": ("record.txt", 250),
    "of a conversation": ("talk", 30),
    "of a conversation that grew": ("grown", 1),
    "of derived text": ("sum", 1),
    "of a turn": ("m0007", 1),
}


@pytest.mark.parametrize("analysed", [False, True], ids=["as loaded", "analysed"])
@pytest.mark.parametrize("name", HITS)
def test_what_surrounds_hits_is_read_by_key(reader: Reader, name: str, analysed: bool) -> None:
    source_id, step = HITS[name]
    refs = reader.spans(source_id)[::step]
    if analysed:
        reader.conn.execute("ANALYZE")
    reader.read(refs, 1)
    assert len(reader.plans) >= 5
    for plan in reader.plans:
        nodes = list(flattened(plan))
        assert any("Relation Name" in node for node in nodes)
        assert seq_scans(reader.conn, nodes) == set()
        assert by_scope_alone(nodes) == set()


def test_the_number_of_statements_does_not_depend_on_what_is_asked(reader: Reader) -> None:
    numbers = set()
    everything = [ref for source_id, step in HITS.values() for ref in reader.spans(source_id)[::step]]
    for refs, neighbours in ((everything[:1], 0), (everything, 0), (everything, 3), (everything, None)):
        assert reader.read(refs, neighbours) >= len(refs)
        numbers.add(len(reader.plans))
    assert numbers == {6}


def test_a_chunk_of_ten_megabytes_is_a_slice_of_them(reader: Reader) -> None:
    refs = reader.spans("record.txt")
    assert len(refs) == PARAGRAPHS
    (whole,) = reader.conn.execute(
        "SELECT pg_column_size(body) / current_setting('block_size')::int FROM planner.source_version"
        " WHERE scope_id = %s AND source_id = 'record.txt'",
        (scope_id(SCOPE),),
    ).fetchone() or (0,)
    for ref in (refs[0], refs[12_000], refs[-1]):
        assert reader.read([ref], 0) == 1
        slices = reader.plans[-1]
        assert buffers(slices) <= BUFFERS_OF_A_LOOK_UP
        assert reader.buffers <= 6 * BUFFERS_OF_A_LOOK_UP < whole / 15


def test_a_window_costs_what_it_shows_not_what_its_document_holds(reader: Reader) -> None:
    long, short = reader.spans("record.txt"), reader.spans("sum")
    cost = {}
    for name, refs in (("long", long[12_000:12_001]), ("short", short)):
        reader.read(refs, 0)
        cost[name] = reader.buffers
    reader.read(long[12_000:12_001], 5)
    assert cost["long"] <= cost["short"] + 2 * BUFFERS_OF_A_LOOK_UP
    assert reader.buffers <= cost["long"] + 11 * BUFFERS_OF_A_LOOK_UP
