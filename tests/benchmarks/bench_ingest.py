"""What loading costs, stage by stage, over the inserts that it cannot avoid; and what plans take meanwhile.

The floor is the same rows in the same run: read back from the tables, then inserted under another scope by
one `INSERT … SELECT FROM unnest` a table, in one transaction, as a superuser, its parameters made before the
clock starts. Of some rounds the fastest load and the fastest floor count. The plans are asked while another
process loads into another scope, and then into theirs. Run it by hand:

    python -m tests.benchmarks.bench_ingest --mb 10
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from uuid import UUID

import psycopg
from psycopg import sql

from planner import Planner, client
from planner.engine import Stopwatch
from planner.ingest import scope_id
from planner.pipeline import ingest, tuning
from planner.store.arrays import array_literal, vector_parameters
from planner.store.connect import Connection, Role, Store, run
from planner.store.schema import embedding, metadata
from tests.benchmarks.bench_plan import database
from tests.benchmarks.wording import SYLLABLES

MB = 1_000_000
STAGES = ("parse", "embed", "compare", "write", "statistics", "rest", "whole")
"""The rest holds the reading of files and, since plans have a lexical leg, the analysis of texts."""
QUESTIONS = 100
Statement = tuple[str, Mapping[str, Any]]


def documents(seed: int) -> Iterator[str]:
    """Yield Markdown of 20 to 200 KB without end: paragraphs of about 450 bytes, a heading to every tenth."""
    random = Random(seed)
    vocabulary = ["".join(random.choices(SYLLABLES, k=random.randint(2, 4))) for _ in range(3_000)]
    while True:
        blocks: list[str] = []
        size, length = 0, random.randint(20_000, 200_000)
        while size < length:
            if len(blocks) % 11 == 0:
                blocks.append(f"## Section of {random.choice(vocabulary)}")
            words = random.choices(vocabulary, k=random.randint(20, 120))
            blocks.append(" ".join(words).capitalize() + ".")
            size += len(blocks[-1]) + 2
        yield "\n\n".join(blocks)


def write_files(folder: Path, mb: float) -> int:
    """Fill a folder with documents; return their bytes."""
    size = 0
    for number, text in enumerate(documents(seed=7)):
        if size >= mb * MB:
            break
        (folder / f"doc-{number:05}.md").write_text(text, encoding="utf-8")
        size += len(text)
    return size


def measure_load(url: str, mb: float, rounds: int) -> Iterator[str]:
    """Load a folder into a scope a round, insert its rows again, and yield the split and the floor."""
    with TemporaryDirectory() as name, Planner.connect(url) as planner:
        folder = Path(name)
        size = write_files(folder, mb)
        planner.engine.embedder().embed(["loaded before the clock starts"])
        spent, floors = [], []
        for scope in (f"load-{number}" for number in range(rounds)):
            with watched() as watch:
                report = planner.ingest(scope, folder)
            spent.append({**watch.timings, "rest": 2 * watch.timings["whole"] - sum(watch.timings.values())})
            floors.append(insert_again(url, scope))
    best = min(spent, key=lambda timings: timings["whole"])
    floor, whole = min(floors), best["whole"]
    yield f"{size / MB:.1f} MB in {len(report.sources)} files: {dict(report.counts)}"
    yield f"{'stage':<12}{'s':>8}{'MB/s':>8}{'share':>8}{'x floor':>9}"
    for stage, ms in (*((stage, best.get(stage, 0.0)) for stage in STAGES), ("floor", floor)):
        speed = size / MB / ms * 1_000 if ms else 0.0
        yield f"{stage:<12}{ms / 1_000:>8.2f}{speed:>8.2f}{ms / whole:>8.0%}{ms / floor:>9.2f}"


@contextmanager
def watched() -> Iterator[Stopwatch]:
    """Time the stages of the loads inside by their functions, as the pipeline calls them."""
    watch, scoped = Stopwatch(), Store.scoped

    @contextmanager
    def timed_scope(store: Store, scope: UUID, role: Role, **options: Any) -> Iterator[Connection]:
        with watch("write" if role == "writer" else "compare"), scoped(store, scope, role, **options) as conn:
            yield conn

    with ExitStack() as patches:
        patches.enter_context(patch.object(Store, "scoped", timed_scope))
        for home, name, stage in (
            (client, "parse", "parse"),
            (ingest, "unit_vectors", "embed"),
            (tuning, "refresh_statistics", "statistics"),
            (Planner, "ingest", "whole"),
        ):
            patches.enter_context(patch.object(home, name, timed(watch, stage, getattr(home, name))))
        yield watch


def timed(watch: Stopwatch, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, timed."""

    def work(*args: Any, **kwargs: Any) -> Any:
        with watch(stage):
            return function(*args, **kwargs)

    return work


def insert_again(url: str, scope: str) -> float:
    """Return the milliseconds that it takes to insert a scope's rows under another scope."""
    with psycopg.connect(url, autocommit=True) as conn:
        home = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
        (schema,) = conn.execute(home).fetchone() or ("public",)
        conn.execute(sql.SQL("SET search_path = planner, {}").format(sql.Identifier(schema)))
        statements = [
            raw_vectors(conn, scope) if table is embedding else raw_insert(conn, table.name, scope)
            for table in metadata.sorted_tables  # as foreign keys want them
            if "scope_id" in table.columns
        ]
        started = time.perf_counter()
        with conn.transaction():
            for statement, params in statements:
                run(conn, sql.Composed([sql.SQL(statement)]), params)  # type: ignore[arg-type]
        return (time.perf_counter() - started) * 1_000


def raw_insert(conn: Connection, table: str, scope: str) -> Statement:
    """Return the insert of a scope's rows of a table under another scope, and its columns as array literals.

    Arrays of arrays must be square: such a column goes as text. Where there are no rows, nothing is inserted.
    """
    columns = conn.execute(
        "SELECT attname, format_type(atttypid, NULL), attndims > 0 FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'scope_id'",
        (table,),
    ).fetchall()
    lists = [f'array_agg("{name}"{"::text" if nested else ""})::text' for name, _, nested in columns]
    read = f"SELECT {', '.join(lists)} FROM {table} WHERE scope_id = %s"
    row = conn.execute(read.encode(), (scope_id(scope),)).fetchone()
    assert row is not None
    names = ", ".join(f'"{name}"' for name, _, _ in columns)
    values = ", ".join(f'r."{name}"::{kind}' for name, kind, _ in columns)
    sent = ", ".join(f"%({name})s::{'text' if nested else kind}[]" for name, kind, nested in columns)
    insert = f"INSERT INTO {table} (scope_id, {names})"
    statement = f"{insert} SELECT %(scope_id)s, {values} FROM unnest({sent}) AS r ({names})"
    params = {name: text for (name, _, _), text in zip(columns, row, strict=True)}
    return statement, {**params, "scope_id": scope_id(f"{scope}-again")}


def raw_vectors(conn: Connection, scope: str) -> Statement:
    """Return the same for a scope's vectors, which go in binary."""
    read = "SELECT model_id, node_id, tx_from, text_hash, vec::real[] FROM embedding WHERE scope_id = %s"
    *columns, vectors = zip(*conn.execute(read, (scope_id(scope),), binary=True), strict=True)
    names = ("model_id", "node_id", "tx_from", "text_hash")
    literals = {name: array_literal(column) for name, column in zip(names, columns, strict=True)}
    made = vector_parameters(vectors)
    places = {name: array_literal(made[name]) for name in ("first", "last")}
    statement = (
        "INSERT INTO embedding (scope_id, model_id, node_id, tx_from, text_hash, vec)"
        " SELECT %(scope_id)s, r.model_id, r.node_id, r.tx_from, r.text_hash,"
        " (%(components)s::real[])[r.first : r.last]::vector"
        " FROM unnest(%(model_id)s::integer[], %(node_id)s::text[], %(tx_from)s::bigint[],"
        " %(text_hash)s::bytea[], %(first)s::integer[], %(last)s::integer[])"
        " AS r (model_id, node_id, tx_from, text_hash, first, last)"
    )
    return statement, {**made, **literals, **places, "scope_id": scope_id(f"{scope}-again")}


def measure_plans(url: str, mb: float) -> Iterator[str]:
    """Load a scope of `mb` and yield what plans take in it: alone, and while another process loads."""
    with Planner.connect(url) as planner:
        text = ""
        for number, text in zip(range(round(mb * MB / 110_000)), documents(seed=8), strict=False):
            planner.ingest_text("asked", f"doc-{number:05}.md", text)
        questions = [block[:200] for block in text.split("\n\n") if not block.startswith("#")][:QUESTIONS]
        yield f"{'plans, while':<22}{'live nodes':>15}{'p50 ms':>8}{'p95 ms':>8}{'loaded MB/s':>13}"
        for name, loaded in (
            ("nothing else", None),
            ("another scope loads", "other"),
            ("their scope loads", "asked"),
            ("nothing else, again", None),
        ):
            nodes = live_nodes(planner)
            with loading(url, loaded) as speed:
                took = sorted(latency(planner, question) for question in questions)
                loaded_speed = speed()
            p50, p95 = statistics.median(took), took[len(took) * 95 // 100]
            grown = f"{nodes}–{live_nodes(planner)}"
            yield f"{name:<22}{grown:>15}{p50:>8.1f}{p95:>8.1f}{loaded_speed:>13.2f}"


def latency(planner: Planner, question: str) -> float:
    """Return the milliseconds of a plan."""
    started = time.perf_counter()
    planner.plan("asked", question)
    return (time.perf_counter() - started) * 1_000


def live_nodes(planner: Planner) -> int:
    """Return how many nodes the scope has that is asked."""
    return next(scope.live_nodes for scope in planner.scopes() if scope.name == "asked")


@contextmanager
def loading(url: str, scope: str | None) -> Iterator[Callable[[], float]]:
    """Let another process load documents into a scope meanwhile; gives what says how many MB/s it loaded."""
    if scope is None:
        yield lambda: 0.0
        return
    context = multiprocessing.get_context("spawn")
    begun, stop, size = context.Event(), context.Event(), context.Value("q", 0)
    process = context.Process(target=load, args=(url, scope, begun, stop, size))
    process.start()
    begun.wait()
    started, before = time.perf_counter(), size.value
    try:
        yield lambda: (size.value - before) / MB / (time.perf_counter() - started)
    finally:
        stop.set()
        process.join()


def load(url: str, scope: str, begun: Event, stop: Event, size: Any) -> None:
    """Ingest documents until told to stop; say when the first is in."""
    with Planner.connect(url) as planner:
        for number, text in enumerate(documents(seed=9)):
            planner.ingest_text(scope, f"new-{number:05}.md", text)
            size.value += len(text)
            begun.set()
            if stop.is_set():
                return


def main() -> None:
    """Measure on a server of its own, or on the URL given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=10.0, help="how much is loaded")
    parser.add_argument("--rounds", type=int, default=3, help="how often")
    parser.add_argument("--asked-mb", type=float, default=2.0, help="how much the scope holds that plans ask")
    parser.add_argument(
        "--url", help="a migrated database, as a superuser; none: a temporary embedded server"
    )
    given = parser.parse_args()
    with database(given.url) as url:
        for measured in (measure_load(url, given.mb, given.rounds), measure_plans(url, given.asked_mb)):
            for line in measured:
                print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
