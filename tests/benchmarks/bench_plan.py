"""What `plan()` costs over the database work it cannot avoid, and the lexical leg beside the vector leg.

The floor is the same SQL in the same run: the statements that the plan sent, replayed with their parameters,
rows fetched, no Python work. It is given with the trace's insert and without (then the plan is compared with
recall and texts alone). The legs are two of the statements; the vector leg is exact, or with `--index` by the
scope's own index. Run it by hand:

    python -m tests.benchmarks.bench_plan --sizes 1000 10000 50000 --score-model v1 v2
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

import psycopg
from psycopg_pool import ConnectionPool

from planner import EvidencePlan, Planner, Settings
from planner.embedded import EmbeddedServer
from planner.ingest import scope_id
from planner.store.connect import Store
from planner.store.upgrade import migrate
from tests.benchmarks.wording import corpus, questions

Model = Literal["v1", "v2"]

QUESTIONS = 15
ROUNDS = 3

LEGS: Mapping[str, str] = {"vector": "WITH near", "lexical": "SELECT l.node_id, s.score"}
"""How the statements of the legs begin; the search by the terms of the hits is a lexical leg too."""

HEADER = (
    "model   nodes   pool   plan ms  floor ms   ratio  without trace  trace/plan  vector ms  lexical ms  l/v"
)


class RecordingCursor(psycopg.Cursor[Any]):
    """Keeps every statement that it is given, with its parameters."""

    sent: ClassVar[list[tuple[Any, Any]]] = []

    def execute(self, query: Any, params: Any = None, **options: Any) -> RecordingCursor:
        """Execute and keep."""
        self.sent.append((query, params))
        super().execute(query, params, **options)
        return self


@dataclass
class Times:
    """Seconds of plans, of their statements replayed, and of the legs among these."""

    plan: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)
    trace: list[float] = field(default_factory=list)
    legs: dict[str, list[float]] = field(default_factory=lambda: {leg: [] for leg in LEGS})

    def line(self) -> str:
        """Return medians in milliseconds, and their ratios."""
        plan, floor, trace = (_median(times) for times in (self.plan, self.floor, self.trace))
        vector, lexical = (_median(times) for times in self.legs.values())
        return (
            f"{plan:>9.1f} {floor + trace:>9.1f} {plan / (floor + trace):>7.2f} {plan / floor:>14.2f}"
            f" {trace / plan:>11.0%} {vector:>10.1f} {lexical:>11.1f} {lexical / vector:>6.2f}"
        )


def measure(url: str, nodes: int, models: Sequence[Model], *, indexed: bool) -> Iterator[str]:
    """Load a scope, plan questions by each score model in turn, and yield a line for each."""
    with ConnectionPool(
        url, min_size=1, max_size=1, kwargs={"autocommit": True, "cursor_factory": RecordingCursor}
    ) as pool:
        scope = f"bench-{nodes}"
        loader = Planner.from_pool(pool)
        for source_id, text in corpus(nodes):
            loader.ingest_text(scope, source_id, text)
        if indexed:
            loader.build_index(scope)
        asked = questions(nodes, QUESTIONS)
        for model in models:
            planner = Planner.from_pool(pool, settings=Settings(score_model=model, plan_model=model))
            planner.plan(scope, asked[0])
            times = Times()
            for question in asked * ROUNDS:
                made = _timed(planner, scope, question, times)
            yield f"{model:<5} {nodes:>7} {made.stats['candidates']:>6} {times.line()}"


def _timed(planner: Planner, scope: str, question: str, times: Times) -> EvidencePlan:
    RecordingCursor.sent.clear()
    started = time.perf_counter()
    made = planner.plan(scope, question, allow_ungrounded=True)
    times.plan.append(time.perf_counter() - started)
    *sent, (insert, params) = list(RecordingCursor.sent)
    took = _replayed(planner.engine.store, scope, sent)
    times.floor.append(took[""])
    for leg in LEGS:
        times.legs[leg].append(took.get(leg, 0.0))
    fresh = {**params, "plan_id": type(params["plan_id"])(int=params["plan_id"].int ^ 1)}
    times.trace.append(_replayed(planner.engine.store, scope, [(insert, fresh)])[""])
    return made


def _replayed(store: Store, scope: str, sent: Sequence[tuple[Any, Any]]) -> dict[str, float]:
    """Return the seconds of all statements together, under no name, and of the first of each leg."""
    took: dict[str, float] = {}
    begun = time.perf_counter()
    with store.scoped(scope_id(scope), "writer") as conn:
        for query, params in sent:
            if params is None:
                continue
            started = time.perf_counter()
            cursor = conn.cursor(binary=True).execute(query, params, prepare=False)
            if cursor.description:
                cursor.fetchall()
            text = query.as_string(None)
            for leg, beginning in LEGS.items():
                if text.startswith(beginning):
                    took.setdefault(leg, time.perf_counter() - started)
    return {**took, "": time.perf_counter() - begun}


def _median(times: Sequence[float]) -> float:
    return 1_000 * statistics.median(times)


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
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000], help="nodes a scope")
    parser.add_argument("--score-model", nargs="+", choices=["v1", "v2"], default=["v1", "v2"])
    parser.add_argument("--index", action="store_true", help="build each scope's vector index")
    parser.add_argument("--url", help="a migrated database; none: a temporary embedded server")
    given = parser.parse_args()
    print(HEADER)  # noqa: T201
    with database(given.url) as url:
        for nodes in given.sizes:
            for line in measure(url, nodes, given.score_model, indexed=given.index):
                print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
