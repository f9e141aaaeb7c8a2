"""The charts of the overview as geometry that a template draws: a column a bucket of time. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from planner.pipeline.overview import Overview, Totals
from planner.surfaces.viewer.plot import ticks

WIDTH, HEIGHT = 360, 120
LEFT, TOP, BOTTOM = 44, 6, 18
GAP = 0.25
"""The share of a column's place that stays free."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a column: where it stands, what it is of, how much it is."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    value: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars in a frame, with the label of its top and middle, and whether there is anything in it."""

    bars: tuple[Bar, ...]
    labels: tuple[tuple[float, float], ...]
    is_empty: bool
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    floor: int = HEIGHT - BOTTOM


def outcomes(found: Overview) -> Chart:
    """Stack planned, refused and failed plans."""
    top = ticks(max(bucket.plans for bucket in found.buckets))[-1]
    bars = []
    for i, bucket in enumerate(found.buckets):
        below = 0
        for kind in ("planned", "refused", "failed"):
            count = getattr(bucket, kind)
            if count:
                bars.append(_bar(found, i, kind, count, below, top))
                below += count
    return _chart(bars, top)


def columns(found: Overview, value: Callable[[Totals], float | None], top: float | None = None) -> Chart:
    """Draw one figure of each bucket, none where a bucket has none."""
    values = [value(bucket) for bucket in found.buckets]
    highest = top or ticks(max((v for v in values if v is not None), default=0))[-1]
    bars = [_bar(found, i, "figure", v, 0, highest) for i, v in enumerate(values) if v is not None]
    return _chart(bars, highest)


def _chart(bars: list[Bar], top: float) -> Chart:
    labels = tuple((_y(value, top), value) for value in (0, top / 2, top))
    return Chart(tuple(bars), labels, not bars)


def _bar(found: Overview, place: int, kind: str, value: float, below: float, top: float) -> Bar:
    pitch = (WIDTH - LEFT) / len(found.buckets)
    y, floor = _y(below + value, top), _y(below, top)
    at = found.since + place * found.width
    x = round(LEFT + (place + GAP / 2) * pitch, 1)
    return Bar(x, y, round(pitch * (1 - GAP), 1), round(floor - y, 1), kind, value, at)


def _y(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(value / top, 1.0), 1)
