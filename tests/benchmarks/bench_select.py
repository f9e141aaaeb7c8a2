"""How long `select()` takes, beside sorting as many tuples: `python -m tests.benchmarks.bench_select`.

The shapes: spans that do not overlap, of many sources; half-overlapping ones of a single source; mostly
duplicates, ten spans over the same text; spans nested in one another, the worst case of the dedup walk.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Iterator
from time import perf_counter

import pytest

from planner.selection.budget import resolve_budget
from planner.selection.select import select
from planner.settings import Settings
from planner.types import Candidate, SelectionPolicy

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 5
Range = tuple[str, int, int]


def disjoint(size: int) -> Iterator[Range]:
    return ((f"doc-{i % (size // 20)}", i * 100, i * 100 + 90) for i in range(size))


def half_overlapping(size: int) -> Iterator[Range]:
    return (("book", i * 50, i * 50 + 100) for i in range(size))


def mostly_duplicates(size: int) -> Iterator[Range]:
    return ((f"doc-{i // 1_000}", i // 10 * 100 + i % 10, i // 10 * 100 + 100) for i in range(size))


def nested(size: int) -> Iterator[Range]:
    return (("book", i, 2 * size - i) for i in range(size))


SHAPES: tuple[Callable[[int], Iterator[Range]], ...] = (disjoint, half_overlapping, mostly_duplicates, nested)


def make_pool(shape: Callable[[int], Iterator[Range]], size: int) -> list[Candidate]:
    rng = random.Random(size)
    ranges = list(shape(size))
    rng.shuffle(ranges)
    return [
        Candidate(source, 1, start, end, "paragraph", "truth", rng.random(), rng.randrange(1, 300))
        for source, start, end in ranges
    ]


def best_ms(function: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = perf_counter()
        function()
        times.append(perf_counter() - began)
    return min(times) * 1_000


def measure(shape: Callable[[int], Iterator[Range]], size: int) -> tuple[float, float, float]:
    """Return the milliseconds of `select()`, of itself without the garbage collector, and of the floor.

    The floor is sorting one tuple a candidate. The collector walks whatever the process holds, so its
    part is the process's as much as the selector's; `timeit` leaves it out, here both are shown.
    """
    settings, pool = Settings(), make_pool(shape, size)
    policy = SelectionPolicy(settings.kind_priors, settings.cache_discount, settings.dedup_overlap)
    budget = resolve_budget(32_000, counter="caller", bound="exact", max_frac=settings.max_frac_per_source)
    spent = best_ms(lambda: select(pool, policy, budget))
    gc.disable()
    try:
        alone = best_ms(lambda: select(pool, policy, budget))
        keys = [(-c.score, c.source_id, c.version_tx, c.start, c.end) for c in pool]
        return spent, alone, best_ms(lambda: sorted(keys))
    finally:
        gc.enable()


def report() -> str:
    heads = f"{'select ms':>11}{'gc off ms':>11}{'floor ms':>10}{'ratio':>7}"
    lines = [f"{'shape':<18}{'candidates':>11}{heads}"]
    for shape in SHAPES:
        for size in SIZES:
            spent, alone, floor = measure(shape, size)
            figures = f"{spent:>11.1f}{alone:>11.1f}{floor:>10.1f}{spent / floor:>7.1f}"
            lines.append(f"{shape.__name__:<18}{size:>11,}{figures}")
    return "\n".join(lines) + "\n"


@pytest.mark.benchmark
def test_selection_is_measured_at_every_size(capsys: pytest.CaptureFixture[str]) -> None:
    text = report()
    with capsys.disabled():
        sys.stdout.write("\n" + text)
    assert text.count("\n") == 1 + len(SHAPES) * len(SIZES)


if __name__ == "__main__":
    sys.stdout.write(report())
