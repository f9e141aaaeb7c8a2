"""Looking at what is stored: texts by pages, what plans made of them, nodes by name, and overviews."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from planner import InsufficientEvidence, Planner
from planner.deliver.parts import parts
from planner.errors import RequestError, UnknownPlan, UnknownScope, UnknownSource
from planner.pipeline.overview import DRAWN_ON
from planner.tokens import counter
from planner.types import Outcome, SpanRef
from tests.integration.graph import Graph, ask, fan

DOC = "doc.md"
TURNS = [{"content": f"Turn {i} at {i}.", "speaker": "Ana"} for i in range(7)]


def write(planner: Planner, scope: str, *angles: int) -> None:
    planner.ingest_text(
        scope, DOC, "\n\n".join(f"Paragraph at {angle}." for angle in angles), title="Paragraphs"
    )


def whole(planner: Planner, scope: str, source: str, limit: int) -> tuple[list[SpanRef], str]:
    """Read a text page by page; return the spans and the text."""
    refs: list[SpanRef] = []
    text, offset = "", 0
    while True:
        page = planner.source_text(scope, source, offset=offset, limit=limit)
        refs += [held.ref for held in page.spans]
        text += "".join(piece.text for piece in page.pieces)
        if page.next_offset is None:
            return refs, text
        assert page.next_offset == offset + len(page.spans)
        offset = page.next_offset


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_of_a_text_join_without_gap_or_overlap(planner: Planner, scope: str, limit: int) -> None:
    write(planner, scope, 0, 10, 20, 30, 40)
    for turn in TURNS:
        planner.append(scope, "talk", [turn])
    for source, total in ((DOC, 5), ("talk", 7)):
        refs, text = whole(planner, scope, source, limit)
        assert refs == [held.ref for held in planner.source(scope, source).spans]
        assert len(refs) == total
        assert len(text.encode()) == planner.source(scope, source).byte_length
        assert all(planner.slice_text(scope, ref) in text for ref in refs)


def test_a_text_is_that_of_a_version_and_says_what_became_of_it(planner: Planner, scope: str) -> None:
    write(planner, scope, 0, 10)
    write(planner, scope, 0, 20)
    older, newest = planner.source_text(scope, DOC, 1), planner.source_text(scope, DOC)
    assert "at 10" in older.pieces[0].text
    assert "at 20" in newest.pieces[0].text
    assert (older.superseded_by, newest.superseded_by) == (2, None)
    assert (newest.title, newest.total, newest.version_tx) == ("Paragraphs", 2, 2)
    planner.erase(scope, DOC)
    erased = planner.source_text(scope, DOC, 1)
    assert (erased.erased_tx, erased.pieces, erased.spans, erased.title) == (3, (), (), None)
    assert erased.to_dict()["erased_tx"] == 3


def test_an_appended_text_is_all_that_was_there_as_of_a_version(planner: Planner, scope: str) -> None:
    for turn in TURNS[:3]:
        planner.append(scope, "talk", [turn])
    then = planner.source_text(scope, "talk", 2)
    assert [piece.ref.version_tx for piece in then.pieces] == [1, 2]
    assert "Turn 1" in then.pieces[1].text
    assert then.total == 2


def test_a_long_piece_is_cut_and_says_so(
    planner: Planner, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.pipeline.text.MAX_BYTES", 10)
    write(planner, scope, 0, 10)
    page = planner.source_text(scope, DOC)
    assert len(page.spans) == 1
    assert page.pieces[0].text == "Paragraph "
    assert page.left_out > 0
    assert page.next_offset == 1


@pytest.mark.parametrize(
    ("source", "version", "offset", "limit", "error"),
    [
        ("nobody", None, 0, 10, UnknownSource),
        (DOC, 9, 0, 10, UnknownSource),
        (DOC, 0, 0, 10, RequestError),
        (DOC, None, -1, 10, RequestError),
        (DOC, None, 0, 0, RequestError),
        (DOC, None, 0, 1_001, RequestError),
        ("\0", None, 0, 10, RequestError),
    ],
)
def test_what_is_no_page_of_a_text_is_refused(
    planner: Planner,
    scope: str,
    source: str,
    version: int | None,
    offset: int,
    limit: int,
    error: type[Exception],
) -> None:
    write(planner, scope, 0)
    with pytest.raises(error):
        planner.source_text(scope, source, version, offset=offset, limit=limit)


def test_a_text_knows_which_plans_used_it_whatever_its_version(planner: Planner, scope: str) -> None:
    write(planner, scope, 0, 90)
    first = ask(planner, scope, text="at 0", budget_tokens=8)
    write(planner, scope, 45, 0, 90)
    second = ask(planner, scope, text="at 0", budget_tokens=8)
    use = planner.source_use(scope, DOC)
    assert use.plans == 2
    texts = {piece: use.texts.get(held.span.text_hash) for held in planner.source(scope, DOC).spans
             for piece in [planner.slice_text(scope, held.ref)]}  # fmt: skip
    selected = texts["Paragraph at 0."]
    assert selected is not None
    assert (selected.selected, selected.rejected, selected.last_selected) == (2, 0, second.ref)
    left = texts["Paragraph at 90."]
    assert left is not None
    assert (left.selected, left.rejected, left.last_rejected) == (0, 2, second.ref)
    assert first.ref != second.ref
    assert planner.source_use(scope, "nobody").texts == {}


def test_texts_and_volumes_are_those_of_today(planner: Planner, scope: str) -> None:
    write(planner, scope, 0, 10)
    ref = planner.source(scope, DOC).spans[0].ref
    planner.derive(scope, "In short, at 5.", [ref], source_id="short")
    write(planner, scope, 20)
    nowhere = SpanRef("nobody", 1, 0, 3)
    assert planner.texts(scope, [ref, nowhere]) == ("Paragraph at 0.", None)
    found = planner.volumes(scope, [(DOC, 1), (DOC, 3), ("short", 2), ("nobody", 1)])
    assert (found[DOC, 1].superseded_by, found[DOC, 3].superseded_by) == (3, None)
    assert found["short", 2].stale
    assert found["nobody", 1].erased
    planner.erase(scope, DOC)
    assert planner.texts(scope, [ref]) == (None,)
    assert planner.volumes(scope, [(DOC, 1)])[DOC, 1].erased
    assert planner.texts(scope, []) == ()
    with pytest.raises(UnknownScope):
        planner.texts("nobody-here", [ref])


def test_nodes_are_named_and_the_ways_to_them_are_told(planner: Planner, scope: str) -> None:
    graph = (
        Graph()
        .node("a", 0, text="First.", label="The first")
        .node("b", 90, text="Second.", label="The second")
    )
    graph.node("c", 90, text="Third.").edge("b", "a", 0.9, predicate="explains").edge("b", "c", 0.8)
    graph.into(planner, scope)
    plan = ask(planner, scope, k=1)
    page = planner.recalled(plan.ref)
    assert page.total == len(page.nodes) == 3
    assert page.legs == {"semantic": 1, "expansion": 2}
    by_id = {named.node.node_id: named for named in page.nodes}
    assert (by_id["a"].label, by_id["a"].kind, by_id["a"].way) == ("The first", "fact", ())
    way = by_id["c"].way
    assert [(step.node_id, step.label) for step in way] == [
        ("a", "The first"),
        ("b", "The second"),
        ("c", ""),
    ]
    assert [(step.predicate, step.forward, step.confidence) for step in way[1:]] == [
        ("explains", False, 0.9),
        ("knows", True, 0.8),
    ]
    assert by_id["c"].node.reached is not None
    assert tuple(step.node_id for step in way) == by_id["c"].node.reached.path
    assert page.to_dict()["nodes"][0]["label"] == "The first"


def test_nodes_come_by_pages_and_those_that_are_gone_keep_their_place(planner: Planner, scope: str) -> None:
    fan(0, 10, 20, 30).into(planner, scope)
    plan = ask(planner, scope)
    first = planner.recalled(plan.ref, limit=3)
    rest = planner.recalled(plan.ref, offset=3, limit=3)
    assert (first.next_offset, rest.next_offset) == (3, None)
    scores = [named.node.score for named in (*first.nodes, *rest.nodes)]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == first.total == 4
    with pytest.raises(RequestError):
        planner.recalled(plan.ref, limit=0)
    with pytest.raises(UnknownPlan):
        planner.recalled(f"{scope}:00000000-0000-7000-8000-000000000000")


def test_an_overview_adds_up_to_its_plans(planner: Planner, scope: str) -> None:
    fan(0, 10, 20).into(planner, scope)
    now = datetime(2026, 6, 1, 12, tzinfo=UTC)
    clocks = [now - timedelta(hours=hours) for hours in (30, 23, 5, 5, 1)]
    plans = []
    for clock in clocks:
        then = Planner(replace(planner.engine, clock=lambda clock=clock: clock))
        plans.append(ask(then, scope, budget_tokens=20))
    today = Planner(replace(planner.engine, clock=lambda: now))
    with pytest.raises(InsufficientEvidence):
        today.plan(scope, embedding=[1.0, 0.0], budget_tokens=1)
    found = today.overview(scope, timedelta(hours=24), buckets=24)
    totals = found.totals
    assert (totals.plans, totals.planned, totals.refused, totals.failed) == (5, 4, 1, 0)
    inside = plans[1:]
    assert totals.used == sum(plan.used for plan in inside)
    assert totals.budget == sum(plan.budget.budget for plan in inside)
    assert totals.utilisation == totals.used / totals.budget
    assert sum(totals.fates.values()) == totals.candidates
    assert totals.fates[Outcome.SELECTED] == sum(len(plan.spans) for plan in inside)
    assert found.errors == {"evidence.insufficient": 1}
    assert [i for i, bucket in enumerate(found.buckets) if bucket.plans] == [1, 19, 23]
    assert [bucket.plans for bucket in found.buckets if bucket.plans] == [1, 2, 2]
    assert sum(bucket.used for bucket in found.buckets) == totals.used
    assert totals.latency is not None
    assert all(a <= b for a, b in pairwise(totals.latency))
    assert found.stages["select"][0] <= found.stages["select"][1]
    drawn = {source.source_id: source for source in found.sources}
    assert sum(source.tokens for source in drawn.values()) == totals.used
    assert found.drawn_on == min(5, DRAWN_ON)
    assert not found.is_capped
    assert found.to_dict()["totals"]["selected"] == totals.fates[Outcome.SELECTED]


def test_an_overview_counts_the_newest_of_many(
    planner: Planner, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fan(0).into(planner, scope)
    plans = [ask(planner, scope, budget_tokens=budget) for budget in (10, 20, 30)]
    monkeypatch.setattr("planner.pipeline.overview.MAX_PLANS", 2)
    found = planner.overview(scope)
    assert found.is_capped
    assert found.totals.plans == 2
    assert found.totals.budget == sum(plan.budget.budget for plan in plans[1:])


def test_an_overview_of_nothing_and_of_no_time(planner: Planner, scope: str) -> None:
    with pytest.raises(UnknownScope):
        planner.overview(scope)
    fan(0).into(planner, scope)
    found = planner.overview(scope)
    assert (found.totals.plans, found.totals.utilisation, found.totals.latency) == (0, None, None)
    assert found.sources == ()
    for since, buckets in ((timedelta(0), 10), (timedelta(days=1), 0), (timedelta(days=1), 1_001)):
        with pytest.raises(RequestError):
            planner.overview(scope, since, buckets=buckets)


@pytest.mark.parametrize("named", ["utf8-script-v1", "utf8-bytes-v1", "openai:o200k_base"])
def test_a_delivery_that_is_looked_at_is_not_kept_and_its_parts_add_up(
    planner: Planner, scope: str, named: str
) -> None:
    write(planner, scope, 0, 10, 20)
    plan = ask(planner, scope, text="at 0", budget_tokens=200)
    made = planner.deliver(plan.ref, "window", budget_tokens=400, counter=named, keep=False)
    assert made.delivery_id is None
    assert planner.deliveries(plan.ref) == ()
    found = parts(made, counter(named, {}))
    assert sum(found) == made.used
    assert min(found) > 0
    assert (
        planner.deliver(plan.ref, "window", budget_tokens=400, counter=named).delivery_hash
        == made.delivery_hash
    )
    assert len(planner.deliveries(plan.ref)) == 1
