"""What delivering costs: 100 hits from 100 sources of 100 KB, by unit, against reading the hits' bytes alone.

First without a store, from memory: what packing alone takes. Printed beside it: the time of a chunk out of a
record of 10 MB. Run it by hand:

    python -m tests.benchmarks.bench_deliver
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from planner import EvidencePlan, Planner, Settings
from planner.deliver.deliver import deliver
from planner.embedded import EmbeddedServer
from planner.embedders import CallableEmbedder
from planner.ingest import scope_id
from planner.store.read import slices
from planner.store.upgrade import migrate
from planner.tokens import ScriptCounter
from planner.types import Unit, ranked
from tests.memory_shelf import MemoryShelf, plain

HITS, PARAGRAPHS = 100, 260
UNITS: tuple[tuple[Unit, int], ...] = (
    ("chunk", 60_000),
    ("window", 90_000),
    ("record", 3_500_000),
    ("auto", 90_000),
)
ROUNDS = 9


def text(name: str, paragraphs: int) -> str:
    """Return paragraphs of 400 bytes, of which the one in the middle is near the question."""
    near = paragraphs // 2
    words = (f"{'near' if i == near else 'far'} {name} {i} ".ljust(398, "w") for i in range(paragraphs))
    return "\n\n".join(words)


def embed(texts: list[str]) -> np.ndarray:
    """Turn the near ones towards the question, all others away."""
    return np.array([[1.0, 0.0] if text.startswith("near") else [0.0, 1.0] for text in texts])


def median(work: Callable[[], object]) -> float:
    """Return how many milliseconds something takes, in the median."""
    took = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        took.append((time.perf_counter() - started) * 1_000)
    return statistics.median(took)


def read_alone(planner: Planner, plan: EvidencePlan) -> None:
    """Read the bytes of what a plan selected, and nothing else."""
    identity = scope_id(plan.ref.scope)
    with planner.engine.store.scoped(identity, "reader", snapshot=True) as conn:
        slices(conn, identity, [span.verdict.candidate.ref for span in ranked(plan)])


def measure_packing() -> None:
    """Pack the same from memory, where reading costs nothing, and print the medians."""
    shelf = MemoryShelf()
    documents = []
    for i in range(HITS):
        document, data = plain(f"{i:03}.txt", text(f"{i:03}", PARAGRAPHS).split("\n\n"))
        documents.append(shelf.put(document, {(document.key, 1): data}))
    hits = [shelf.hit(rank, document, PARAGRAPHS // 2) for rank, document in enumerate(documents, start=1)]
    for unit, budget in UNITS:
        took = median(
            lambda unit=unit, budget=budget: deliver(
                hits, shelf, unit=unit, budget=budget, counter=ScriptCounter()
            )  # type: ignore[misc]
        )
        print(f"{unit} in {budget} tokens, from memory: {took:.1f} ms")  # noqa: T201


def measure(planner: Planner) -> None:
    """Load, plan, deliver each unit, and print the medians and ratios."""
    for i in range(HITS):
        planner.ingest_text("many", f"{i:03}.txt", text(f"{i:03}", PARAGRAPHS))
    planner.ingest_text("one", "record.txt", text("record", 25_000))
    plan = planner.plan("many", "near", k=HITS, hops=0, budget_tokens=100_000)
    assert len(plan.spans) == HITS
    alone = median(lambda: read_alone(planner, plan))
    print(f"{HITS} hits, their bytes alone: {alone:.1f} ms")  # noqa: T201
    for unit, budget in UNITS:
        took = median(lambda unit=unit, budget=budget: planner.deliver(plan, unit, budget_tokens=budget))  # type: ignore[misc]
        print(f"{unit} in {budget} tokens: {took:.1f} ms, {took / alone:.1f} times as much")  # noqa: T201
    large = planner.plan("one", "near", k=1, hops=0, budget_tokens=1_000)
    for unit in ("chunk", "window"):
        took = median(lambda unit=unit: planner.deliver(large, unit))  # type: ignore[misc]
        print(f"{unit} of a record of 10 MB: {took:.1f} ms")  # noqa: T201


def main() -> None:
    """Measure on an embedded server of its own."""
    measure_packing()
    settings = Settings(max_frac_per_source=1.0, k=HITS)
    embedder = CallableEmbedder("near or far", 2, embed)
    with TemporaryDirectory() as folder, EmbeddedServer(Path(folder), durable=False) as server:
        migrate(server.url)
        with Planner.connect(server.url, settings=settings, embedder=embedder) as planner:
            measure(planner)
        server.stop()


if __name__ == "__main__":
    main()
