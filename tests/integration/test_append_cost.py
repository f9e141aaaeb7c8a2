"""One turn costs one small transaction: as many statements and rows at the 10,000th turn as at the 10th."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from planner import Planner, Settings
from tests.integration.graph import circle_embedder

TALK = "talk.json"
SHORT, LONG, GROWN = 10, 10_000, 300


@dataclass
class Meter:
    """A planner on one connection, whose statements are counted, and the rows read for them."""

    planner: Planner
    pool: ConnectionPool[psycopg.Connection[Any]]
    sent: list[str] = field(default_factory=list)

    def rows(self) -> int:
        """Return how many rows of the planner's tables were read so far, by scans and through indexes."""
        with self.pool.connection() as conn:
            conn.execute("SELECT pg_stat_force_next_flush()")
        with self.pool.connection() as conn:
            row = conn.execute(
                "SELECT sum(coalesce(t.seq_tup_read, 0) + coalesce(t.idx_tup_fetch, 0)),"
                " (SELECT sum(i.idx_tup_read) FROM pg_stat_all_indexes i WHERE i.schemaname = 'planner')"
                " FROM pg_stat_all_tables t WHERE t.schemaname = 'planner'"
            ).fetchone()
        assert row is not None
        return int(row[0] + row[1])

    def read_whole(self, *tables: str) -> int:
        """Return how many rows of tables were read so far by reading the tables whole."""
        with self.pool.connection() as conn:
            conn.execute("SELECT pg_stat_force_next_flush()")
        with self.pool.connection() as conn:
            read = "SELECT seq_tup_read FROM pg_stat_all_tables WHERE relid = %s::regclass"
            return sum(conn.execute(read, (f"planner.{t}",)).fetchall()[0][0] for t in tables)

    def append(self, scope: str, text: str) -> tuple[int, int, float]:
        """Append a turn; return its statements, the rows read, and milliseconds."""
        before, statements = self.rows(), len(self.sent)
        started = time.perf_counter()
        self.planner.append(scope, TALK, [turn(text)])
        took = (time.perf_counter() - started) * 1_000
        statements = len(self.sent) - statements
        return statements, self.rows() - before, took


def turn(text: str) -> dict[str, str]:
    return {"speaker": "Ada", "content": text, "id": f"id of {text}"}


@pytest.fixture
def meter(database_url: str) -> Iterator[Meter]:
    sent: list[str] = []

    class Counting(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            sent.append(str(query))
            return super().execute(query, params, **options)

    parts: dict[str, Any] = {"settings": Settings(), "embedder": circle_embedder()}
    options = {"cursor_factory": Counting, "prepare_threshold": None}
    with ConnectionPool(database_url, min_size=1, max_size=1, kwargs=options, open=True) as pool:
        yield Meter(Planner.from_pool(pool, **parts), pool, sent)


def test_a_turn_reads_no_more_behind_ten_thousand_than_behind_ten(
    meter: Meter, capsys: pytest.CaptureFixture[str]
) -> None:
    for scope, length in (("short", SHORT), ("long", LONG)):
        texts = [f"Turn {i} at {i % 180}." for i in range(length)]
        meter.planner.ingest_conversation(scope, TALK, [turn(text) for text in texts])
    for i in range(GROWN):
        meter.planner.append("grown", TALK, [turn(f"Turn {i} at {i % 180}.")])
    with meter.pool.connection() as conn:
        conn.execute("ANALYZE")
    cost = {
        scope: [meter.append(scope, f"Next {i} at {i}.") for i in range(9)]
        for scope in ("short", "long", "grown")
    }
    figures = {
        scope: (
            max(statements for statements, _, _ in turns),
            statistics.median(rows for _, rows, _ in turns),
            statistics.median(took for _, _, took in turns),
        )
        for scope, turns in cost.items()
    }
    with capsys.disabled():
        for scope, (statements, rows, took) in figures.items():
            print(f"\nappend to {scope}: {statements} statements, {rows:.0f} rows, {took:.1f} ms", end="")  # noqa: T201
    assert figures["short"][0] == figures["long"][0] == figures["grown"][0] < 30
    assert figures["long"][1] <= figures["short"][1] + 10
    assert figures["grown"][1] <= figures["short"][1] + 10
    before = meter.rows()
    assert len(meter.planner.source("grown", TALK).spans) == GROWN + 9
    assert meter.rows() - before < 20 * GROWN  # the whole chain is read a few times, not once a version


def test_a_text_that_is_there_a_thousand_times_costs_a_bounded_number_of_look_ups(meter: Meter) -> None:
    same = [{"speaker": "Ada", "content": "ok"}] * 1_000
    meter.planner.ingest_conversation("same", TALK, same)
    before = len(meter.sent)
    meter.planner.append("same", TALK, same[:1])
    looked = [sent for sent in meter.sent[before:] if "'position'" in sent]
    assert 1 <= len(looked) <= 3
    assert meter.planner.source("same", TALK).spans[-1].span.ordinal == 1_000


def test_foreign_keys_are_checked_by_index_though_their_tables_were_small_once(meter: Meter) -> None:
    few, many = ("\n\n".join(f"Paragraph {i} at {i % 180}." for i in range(length)) for length in (6, 600))
    for name in "ab":
        meter.planner.ingest_text("s", f"{name}.md", few)
        with meter.pool.connection() as conn:
            conn.execute("ANALYZE")  # a table of one page is read whole
    referred_to = ("scope", "ledger", "source", "source_version", "embedding_model")
    before = meter.read_whole(*referred_to)
    meter.planner.ingest_text("s", "many.md", many)
    assert meter.read_whole(*referred_to) - before < 60
