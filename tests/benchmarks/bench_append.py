"""What one more turn of a conversation costs, by how many came before, each appended on its own.

Printed beside it: what showing, ingesting again and deleting such a conversation takes. Run it by hand:

    python -m tests.benchmarks.bench_append --turns 10000
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from planner import Planner
from planner.embedded import EmbeddedServer
from planner.store.upgrade import migrate

TALK = "talk.json"
AROUND = 50
"""Turns whose median stands for a place."""


def turn(number: int) -> dict[str, str]:
    """Return a message of about twenty words."""
    return {"id": f"m{number}", "speaker": "Ada", "content": f"Turn {number}. " + "Something to say. " * 6}


def milliseconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1_000


def measure(planner: Planner, turns: int) -> None:
    """Append turn by turn and print the medians, then the rest."""
    took = [milliseconds(lambda n=n: planner.append("bench", TALK, [turn(n)])) for n in range(turns)]  # type: ignore[misc]
    for place in (10, 100, 1_000, 10_000):
        if place <= turns:
            near = took[max(0, place - AROUND) : place]
            print(f"append at turn {place}: {statistics.median(near):.1f} ms (median of {len(near)})")  # noqa: T201
    whole = [turn(n) for n in range(turns)]
    other = {
        "show": lambda: planner.source("bench", TALK),
        "list": lambda: planner.sources("bench"),
        "ingest again, unchanged": lambda: planner.ingest_conversation("bench", TALK, whole),
        "plan": lambda: planner.plan("bench", "Something to say"),
        "erase": lambda: planner.erase("bench", TALK),
        "delete the scope": lambda: planner.delete_scope("bench"),
    }
    for name, work in other.items():
        print(f"{name}: {milliseconds(work):.0f} ms", flush=True)  # noqa: T201


def main() -> None:
    """Measure on an embedded server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000)
    turns = parser.parse_args().turns
    with TemporaryDirectory() as folder, EmbeddedServer(Path(folder), durable=False) as server:
        migrate(server.url)
        with Planner.connect(server.url) as planner:
            measure(planner, turns)
        server.stop()


if __name__ == "__main__":
    main()
