"""What HTTP costs: plans and contexts through `planner serve` against the same calls in this process.

Both on one database, one after the other in each round, with 1 and 8 callers at a time. Then how soon /livez
is answered while callers plan over pools of 10,000 spans. Run it by hand:

    python -m tests.benchmarks.bench_serve
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from planner import Planner
from planner.embedded import EmbeddedServer
from planner.store.upgrade import migrate
from tests.served import served

SOURCES, PARAGRAPHS = 100, 100
CALLS, ROUNDS, BEATS, CROWD = 60, 3, 100, 4
WIDE = {"structured_limit": 10_000, "max_nodes": 10_000, "max_spans": 10_000}
WORDS = ("harbour", "gate", "storm", "tide", "ledger", "signal", "rope", "crane", "pilot", "quay", "buoy")


def out(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def text(number: int) -> str:
    """Return a source of paragraphs, each with words of its own."""
    lines = []
    for i in range(PARAGRAPHS):
        at = number * PARAGRAPHS + i
        lines.append(" ".join(WORDS[(at * step) % len(WORDS)] for step in (1, 3, 7, 11)) + f" number {at}.")
    return "\n\n".join(lines)


def timed(work: Callable[[int], object], callers: int, calls: int = CALLS) -> tuple[float, list[float]]:
    """Return calls a second, and the milliseconds of each."""
    took: list[float] = []

    def once(number: int) -> None:
        started = time.perf_counter()
        work(number)
        took.append((time.perf_counter() - started) * 1_000)

    begun = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(once, range(calls)))
    return calls / (time.perf_counter() - begun), sorted(took)


def question(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "scope": "bench",
        "text": f"{WORDS[number % len(WORDS)]} number {number}",
        "budget_tokens": 1_000,
        **fields,
    }


def told(name: str, callers: int, rounds: list[tuple[float, list[float]]]) -> float:
    """Print the median round; return its median time."""
    rate = statistics.median(rate for rate, _ in rounds)
    took = sorted(one for _, round_ in rounds for one in round_)
    p50, p95 = (took[int(share * (len(took) - 1))] for share in (0.5, 0.95))
    out(f"{name:<28} {callers:>2} callers {rate:>7.1f}/s   p50 {p50:>7.1f} ms   p95 {p95:>7.1f} ms")
    return p50


def compare(planner: Planner, http: httpx.Client) -> None:
    """Time each call in this process and through the service, in turns."""
    for name, path, call in (
        ("plan", "/v1/plans", lambda n: planner.plan(question(n)).to_dict()),
        ("context", "/v1/context", lambda n: planner.context(question(n)).to_dict()),
    ):
        for callers in (1, 8):
            inside, outside = [], []
            for _ in range(ROUNDS):
                inside.append(timed(call, callers))
                outside.append(timed(lambda n, path=path: asked(http, path, question(n)), callers))
            ratio = 1 / (
                told(f"{name} in process", callers, inside) / told(f"{name} over HTTP", callers, outside)
            )
            out(f"{'':<28} {'':>2} over HTTP × {ratio:.2f} in the median")


def asked(http: httpx.Client, path: str, body: dict[str, Any]) -> None:
    http.post(path, json=body).raise_for_status()


def beat(http: httpx.Client, base: str) -> None:
    """Time /livez alone, and while four callers plan over pools of 10,000 spans."""
    wide = question(1, match={"field": "kind", "op": "eq", "value": "paragraph"}, **WIDE)
    spans = http.post("/v1/plans", json=wide).raise_for_status().json()["stats"]["candidates"]
    with httpx.Client(base_url=base) as other:

        def livez(_: int) -> None:
            other.get("/livez").raise_for_status()

        told("livez, nothing else", 1, [timed(livez, 1, BEATS)])
        took: list[float] = []
        with ThreadPoolExecutor(CROWD) as pool:
            running = [pool.submit(asked, http, "/v1/plans", wide) for _ in range(4 * CROWD)]
            while not all(future.done() for future in running):
                took += timed(livez, 1, 1)[1]
                time.sleep(0.02)
        for future in running:
            future.result()
    rate = len(took) / sum(took) * 1_000
    told(f"livez, plans of {spans} spans", 1, [(rate, sorted(took))])
    out(f"{'':<28} {len(took)} times during {len(running)} plans; the longest {max(took):.1f} ms")


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        EmbeddedServer(Path(folder), durable=False, idle_seconds=1) as server,
    ):
        migrate(server.url)
        limits = [f"--set={name}={value}" for name, value in WIDE.items()]
        with Planner.connect(server.url) as planner, served("--database-url", server.url, *limits) as process:
            for number in range(SOURCES):
                planner.ingest_text("bench", f"{number:03}.md", text(number))
            with httpx.Client(base_url=process.url, timeout=120) as http:
                compare(planner, http)
                beat(http, process.url)
            assert process.stop() == 0


if __name__ == "__main__":
    main()
