"""What `plan()` costs over the database work it cannot avoid.

The floor is the same SQL in the same run: the statements that the plan sent, replayed with their parameters,
rows fetched, no Python work. It is given with the trace's insert and without (then the plan is compared with
recall and texts alone). Run it by hand:

    python -m tests.benchmarks.bench_plan --sizes 1000 10000 50000
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import psycopg
from psycopg_pool import ConnectionPool

from planner import Planner
from planner.embedded import EmbeddedServer
from planner.ingest import scope_id
from planner.store.connect import Store
from planner.store.upgrade import migrate

SYLLABLES = [consonant + vowel for consonant in "bdgklmnr" for vowel in "aeiou"]
QUESTIONS = 15
ROUNDS = 3


class RecordingCursor(psycopg.Cursor[Any]):
    """Keeps every statement that it is given, with its parameters."""

    sent: ClassVar[list[tuple[Any, Any]]] = []

    def execute(self, query: Any, params: Any = None, **options: Any) -> RecordingCursor:
        """Execute and keep."""
        self.sent.append((query, params))
        super().execute(query, params, **options)
        return self


def corpus(nodes: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """Yield Markdown documents that make about `nodes` nodes: 40 paragraphs under 4 headings each."""
    random = Random(seed)
    vocabulary = ["".join(random.choices(SYLLABLES, k=random.randint(2, 4))) for _ in range(3_000)]
    for number in range(max(1, nodes // 46)):
        blocks = [f"# Document {number}"]
        for section in range(4):
            blocks.append(f"## Section {section} of {random.choice(vocabulary)}")
            blocks.extend(
                " ".join(random.choices(vocabulary, k=random.randint(8, 60))).capitalize() + "."
                for _ in range(10)
            )
        yield f"doc-{number:05}.md", "\n\n".join(blocks)


def measure(url: str, nodes: int) -> str:
    """Load a scope, plan questions, and return a line: medians in milliseconds and their ratios."""
    with ConnectionPool(
        url, min_size=1, max_size=1, kwargs={"autocommit": True, "cursor_factory": RecordingCursor}
    ) as pool:
        planner = Planner.from_pool(pool)
        scope = f"bench-{nodes}"
        for source_id, text in corpus(nodes):
            planner.ingest_text(scope, source_id, text)
        questions = [text.split("\n\n")[7][:200] for _, text in list(corpus(nodes))[:QUESTIONS]]
        planner.plan(scope, questions[0])
        plans, floors, traces = [], [], []
        for question in questions * ROUNDS:
            RecordingCursor.sent.clear()
            started = time.perf_counter()
            made = planner.plan(scope, question)
            plans.append(time.perf_counter() - started)
            sent = list(RecordingCursor.sent)
            floors.append(_replayed(planner.engine.store, scope, sent[:-1]))
            traces.append(_traced(planner.engine.store, scope, sent[-1]))
    plan, floor, trace = (1_000 * statistics.median(times) for times in (plans, floors, traces))
    pool_size = made.stats["candidates"]
    return (
        f"{nodes:>7} {pool_size:>6} {plan:>9.1f} {floor + trace:>9.1f} {plan / (floor + trace):>7.2f}"
        f" {plan / floor:>13.2f} {trace / plan:>9.0%}"
    )


def _replayed(store: Store, scope: str, sent: list[tuple[Any, Any]]) -> float:
    def work(conn: Any) -> None:
        for query, params in sent:
            if params is not None:
                cursor = conn.cursor(binary=True)
                cursor.execute(query, params, prepare=False)
                cursor.fetchall()

    return _timed(store, scope, work)


def _traced(store: Store, scope: str, statement: tuple[Any, Any]) -> float:
    def work(conn: Any) -> None:
        query, params = statement
        conn.cursor(binary=True).execute(
            query, {**params, "plan_id": _fresh(params["plan_id"])}, prepare=False
        )

    return _timed(store, scope, work)


def _timed(store: Store, scope: str, work: Callable[[Any], None]) -> float:
    started = time.perf_counter()
    with store.scoped(scope_id(scope), "reader") as conn:
        work(conn)
    return time.perf_counter() - started


def _fresh(plan_id: Any) -> Any:
    return type(plan_id)(int=plan_id.int ^ 1)


@contextmanager
def database(given: str | None) -> Iterator[str]:
    """Give a URL: the given one, or that of a migrated embedded server."""
    if given:
        yield given
        return
    with TemporaryDirectory() as folder:
        server = EmbeddedServer(Path(folder) / "server", durable=False)
        with server:
            migrate(server.url)
            yield server.url
        server.stop()


def main() -> None:
    """Measure the sizes of the command line on a server of its own, or on the URL given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--url", help="a migrated database; none: a temporary embedded server")
    given = parser.parse_args()
    print("  nodes   pool   plan ms  floor ms   ratio  without trace  trace/plan")  # noqa: T201
    with database(given.url) as url:
        for nodes in given.sizes:
            print(measure(url, nodes), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
