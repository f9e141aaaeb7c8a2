"""What the viewer draws: marks, axes, columns and words, without a page."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.pipeline.overview import Overview, Totals
from planner.pipeline.text import Piece
from planner.surfaces.viewer import chart, words
from planner.surfaces.viewer.links import Links, anchor_of
from planner.surfaces.viewer.marks import Mark, runs
from planner.surfaces.viewer.plot import ticks
from planner.surfaces.viewer.render import age, milliseconds, share, shown, time
from planner.trace.why import Stage
from planner.types import Outcome, PlanRef, SpanRef
from tests.strategies import texts

SOURCE = "a.md"


@given(st.floats(1e-9, 1e12, allow_nan=False))
def test_ticks_are_round_few_and_reach_the_largest(largest: float) -> None:
    found = ticks(largest)
    assert found[0] == 0
    assert found[-1] >= largest * (1 - 1e-6)
    assert 2 <= len(found) <= 7
    steps = [b - a for a, b in pairwise(found)]
    assert max(steps) - min(steps) <= 1e-6 * max(steps) + 1e-10


def test_ticks_of_nothing_are_an_axis_still() -> None:
    assert ticks(0) == [0, 1]


@st.composite
def marked(draw: st.DrawFn) -> tuple[Piece, list[SpanRef], dict[SpanRef, Mark]]:
    """Draw a piece of a text, spans of it that may overlap or reach out of it, and their marks."""
    data = draw(texts).encode()
    start = draw(st.integers(0, 20))
    piece = Piece(SpanRef(SOURCE, 1, start, start + len(data)), data.decode())
    bounds = [start + i for i in range(len(data) + 1) if i == len(data) or data[i] & 0xC0 != 0x80]
    ends = st.sampled_from([*bounds, 0, start + len(data) + 5])
    ranges = draw(st.lists(st.tuples(ends, ends), max_size=6))
    refs = [SpanRef(SOURCE, 1, min(pair), max(pair)) for pair in ranges if pair[0] != pair[1]]
    return piece, refs, {ref: draw(st.sampled_from(list(Mark)[:3])) for ref in refs}


@given(marked())
def test_runs_are_the_text_and_each_begins_and_ends_what_is_in_it(
    drawn: tuple[Piece, list[SpanRef], dict[SpanRef, Mark]],
) -> None:
    piece, refs, marks = drawn
    found = runs(piece, refs, marks)
    assert "".join(run.text for run in found) == piece.text
    at = piece.ref.start
    for run in found:
        end = at + len(run.text.encode())
        inside = {ref for ref in refs if ref.start < end and ref.end > at}
        assert set(run.refs) == inside
        assert (run.mark is Mark.BETWEEN) == (not inside)
        assert set(run.begins) == {ref for ref in inside if max(ref.start, piece.ref.start) == at}
        assert set(run.ends) == {ref for ref in inside if ref.end == end}
        at = end


def test_of_overlapping_marks_the_best_shows() -> None:
    piece = Piece(SpanRef(SOURCE, 1, 0, 6), "abcdef")
    outer, inner = SpanRef(SOURCE, 1, 0, 6), SpanRef(SOURCE, 1, 2, 4)
    found = runs(piece, [outer, inner], {outer: Mark.NEVER, inner: Mark.SELECTED})
    assert [(run.text, run.mark) for run in found] == [
        ("ab", Mark.NEVER),
        ("cd", Mark.SELECTED),
        ("ef", Mark.NEVER),
    ]


def test_columns_stack_to_their_plans_and_stay_in_the_frame() -> None:
    fates = dict.fromkeys(Outcome, 0)
    busy = Totals(6, 3, 2, 1, 100, 50, 0, 0, 10, fates, (1.0, 2.0, 3.0))
    none = Totals(0, 0, 0, 0, 0, 0, 0, 0, 0, fates, None)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    found = Overview("s", start, start + timedelta(2), timedelta(1), 10, busy, (none, busy), {}, {}, (), 6)
    drawn = chart.outcomes(found)
    assert [(bar.kind, bar.value) for bar in drawn.bars] == [("planned", 3), ("refused", 2), ("failed", 1)]
    assert {bar.at for bar in drawn.bars} == {start + timedelta(1)}
    assert all(bar.y >= 0 and bar.y + bar.height <= drawn.floor + 0.2 for bar in drawn.bars)
    assert math.isclose(drawn.bars[0].y, drawn.bars[1].y + drawn.bars[1].height, abs_tol=0.2)
    assert chart.columns(found, lambda bucket: bucket.utilisation, 1.0).bars[0].value == 0.5


def test_every_stage_outcome_and_statistic_has_its_words() -> None:
    told = {stage for stages in words.PHASES.values() for stage in stages}
    assert told == {stage.value for stage in Stage} - {"selected"}
    assert set(words.FATES) == set(Outcome)
    assert words.phases("over_budget")[-2:] == [("packed", "fell"), ("delivered", "not")]
    assert {became for _, became in words.phases("selected")} == {"passed"}


def test_figures_come_in_the_order_in_which_they_are_told() -> None:
    assert list(words.in_order({"text": 1, "novel": 2, "scope": 3}, words.STAGES)) == [
        "scope",
        "text",
        "novel",
    ]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a<b>&\"'", "a&lt;b&gt;&amp;&#34;&#39;"),
        ("one\ntwo\t3", "one\ntwo\t3"),
        ("\u202ex", '<span class="unseen">\\u202e</span>x'),
        ("\x1b[31m", '<span class="unseen">\\x1b</span>[31m'),
        ("日本 🇨🇭 é", "日本 🇨🇭 é"),
    ],
)
def test_stored_text_is_shown_as_what_it_is(text: str, html: str) -> None:
    assert shown(text) == html


def test_times_and_figures_read_well() -> None:
    at = datetime(2026, 5, 1, 9, 30, 5, 123456, tzinfo=UTC)
    assert time(at) == '<time datetime="2026-05-01T09:30:05.123Z">2026-05-01 09:30:05 UTC</time>'
    assert [age(at, at + timedelta(seconds=s)) for s in (-5, 3, 59, 60, 7_200, 200_000)] == [
        *("just now", "just now", "59 s ago", "1 min ago", "2 h ago", "2 d ago"),
    ]
    assert [share(value) for value in (None, 0, 0.001, 0.5, 1)] == ["–", "0%", "<1%", "50%", "100%"]
    assert [milliseconds(value) for value in (None, 1.25, 1_234.5)] == ["–", "1.2 ms", "1,234 ms"]


def test_addresses_hold_any_name_and_leave_out_what_is_not_asked() -> None:
    links, ref = Links("/ui"), PlanRef("notes", "0190f5a2-7c1e-7a53-8000-0123456789ab")
    assert links.plan(ref) == f"/ui/scopes/notes/plans/{ref.plan_id}"
    assert (
        links.plan(ref, "why", what="a b&c", note=None)
        == f"/ui/scopes/notes/plans/{ref.plan_id}/why?what=a+b%26c"
    )
    assert (
        links.source("notes", "a/b c?#.md", version=3)
        == "/ui/scopes/notes/source?id=a%2Fb+c%3F%23.md&version=3"
    )
    span = SpanRef("x.md", 2, 5, 9)
    assert links.span("notes", span).endswith(f"&at=5#{anchor_of(span)}")
