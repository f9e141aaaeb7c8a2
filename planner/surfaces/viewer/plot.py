"""The plot of a pool: weight against tokens, by outcome, as geometry that a template draws. Pure.

A large pool would be thousands of links that nobody can tell apart. Beyond `MOST_POINTS` only what was
selected is drawn one by one, the rest as a grid of cells that say how many they hold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from planner.trace.told import density
from planner.types import EvidencePlan, Outcome, PlannedSpan

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 28, 40
MOST_POINTS = 400
COLUMNS, ROWS = 36, 16


@dataclass(frozen=True, slots=True)
class Point:
    """One candidate on the plot."""

    x: float
    y: float
    span: PlannedSpan


@dataclass(frozen=True, slots=True)
class Cell:
    """Candidates of one outcome that lie close together: the cell's corner, size, and how many they are."""

    x: float
    y: float
    side: float
    outcome: Outcome
    count: int
    weights: tuple[float, float]
    tokens: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing of `WIDTH` × `HEIGHT`; `cut` is a line from one point to another, and what it says."""

    points: tuple[Point, ...]
    cells: tuple[Cell, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    cut: tuple[float, float, float, float] | None
    cut_says: str
    undrawn: int = 0
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    floor: int = HEIGHT - BOTTOM


@dataclass(frozen=True, slots=True)
class _Axes:
    """The scales: tokens across, weight up, both from 0."""

    tokens: float
    weight: float

    def x(self, tokens: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(tokens / self.tokens, 1.0), 1)

    def y(self, weight: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(weight / self.weight, 1.0), 1)


def plot(plan: EvidencePlan) -> Plot | None:
    """Draw a plan's pool; None where it has none."""
    pool = (*plan.rejected, *plan.spans)
    if not pool:
        return None
    tokens = ticks(max(span.verdict.candidate.tokens for span in pool))
    weights = ticks(max(span.verdict.weight for span in pool))
    axes = _Axes(tokens[-1], weights[-1])
    few = len(pool) <= MOST_POINTS
    drawn = pool if few else plan.spans[:MOST_POINTS]
    points = (Point(axes.x(s.verdict.candidate.tokens), axes.y(s.verdict.weight), s) for s in drawn)
    cut, says = _cut(plan, axes)
    return Plot(
        points=tuple(points),
        cells=() if few else _cells(plan.rejected, axes),
        across=tuple(Tick(axes.x(value), f"{value:,.0f}") for value in tokens),
        up=tuple(Tick(axes.y(value), f"{value:g}") for value in weights),
        cut=cut,
        cut_says=says,
        undrawn=0 if few else len(plan.spans) - len(drawn),
    )


def ticks(largest: float) -> list[float]:
    """Return round values from 0 to the first that is not below the largest, at most six."""
    if largest <= 0:
        return [0.0, 1.0]
    raw = largest / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    return [round(step * i, 10) for i in range(math.ceil(largest / step - 1e-9) + 1)]


def _cut(plan: EvidencePlan, axes: _Axes) -> tuple[tuple[float, float, float, float] | None, str]:
    """Return the line below which nothing was selected: a density in v1, a weight in v2."""
    if not plan.spans:
        return None, ""
    if plan.plan_model == "v1":
        least = min(map(density, plan.spans))
        end = min(axes.tokens, axes.weight / least) if least > 0 else axes.tokens
        line = (axes.x(0), axes.y(0), axes.x(end), axes.y(least * end))
        return line, f"lowest density selected, {least:.6f} weight by token"
    least = min(span.verdict.weight for span in plan.spans)
    return (
        axes.x(0),
        axes.y(least),
        axes.x(axes.tokens),
        axes.y(least),
    ), f"lowest weight selected, {least:.4f}"


def _cells(spans: Sequence[PlannedSpan], axes: _Axes) -> tuple[Cell, ...]:
    width, height = (WIDTH - LEFT - RIGHT) / COLUMNS, (HEIGHT - TOP - BOTTOM) / ROWS
    held: dict[tuple[int, int], list[PlannedSpan]] = {}
    for span in spans:
        x, y = axes.x(span.verdict.candidate.tokens) - LEFT, axes.y(span.verdict.weight) - TOP
        held.setdefault((min(int(x / width), COLUMNS - 1), min(int(y / height), ROWS - 1)), []).append(span)
    most = max(map(len, held.values()), default=1)
    cells = []
    for (column, row), there in sorted(held.items()):
        outcome, _ = Counter(span.verdict.outcome for span in there).most_common(1)[0]
        side = min(width, height) * (0.35 + 0.65 * math.sqrt(len(there) / most))
        weights = [span.verdict.weight for span in there]
        tokens = [span.verdict.candidate.tokens for span in there]
        cells.append(
            Cell(
                x=round(LEFT + (column + 0.5) * width - side / 2, 1),
                y=round(TOP + (row + 0.5) * height - side / 2, 1),
                side=round(side, 1),
                outcome=outcome,
                count=len(there),
                weights=(min(weights), max(weights)),
                tokens=(min(tokens), max(tokens)),
            )
        )
    return tuple(cells)
