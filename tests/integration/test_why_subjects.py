"""`why` finds what is meant by a span, a node, a source or a phrase, and nothing of another scope."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from planner import Planner, PlanRef, Settings
from planner.errors import RequestError, UnknownPlan
from planner.pipeline.why import MAX_ANSWERS
from tests.integration.graph import V1

DOCUMENT = """# 動物

The quick brown fox jumps over the lazy dog.

猫は一日中眠る。犬は走る。

## Straße

Fish 🐟 swim in the sea, and 👩‍🚀 float above it.
"""


@pytest.fixture
def planner(database_url: str) -> Iterator[Planner]:
    with Planner.connect(database_url, settings=Settings(**V1)) as opened:
        opened.ingest_text("s", "animals.md", DOCUMENT)
        yield opened


@pytest.fixture
def plan(planner: Planner) -> PlanRef:
    return planner.plan("s", "What do animals do?").ref


def texts(planner: Planner, plan: PlanRef, what: str) -> list[str]:
    """Return the texts of the spans that are answered for, in the order of the source."""
    why = planner.why(plan, what)
    refs = sorted(answer.ref for answer in why.answers if answer.ref is not None)
    return [planner.slice_text("s", ref) for ref in refs]


@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        ("quick brown", ["The quick brown fox jumps over the lazy dog."]),
        ("QUICK Brown", ["The quick brown fox jumps over the lazy dog."]),
        ("一日中", ["猫は一日中眠る。犬は走る。"]),
        ("🐟 swim", ["Fish 🐟 swim in the sea, and 👩‍🚀 float above it."]),
        ("FISH 🐟", ["Fish 🐟 swim in the sea, and 👩‍🚀 float above it."]),
        ("STRASSE", ["Straße"]),
        ("dog.\r\n\r\n猫", ["The quick brown fox jumps over the lazy dog.", "猫は一日中眠る。犬は走る。"]),
        ("dog.\r\r猫", ["The quick brown fox jumps over the lazy dog.", "猫は一日中眠る。犬は走る。"]),
    ],
)
def test_a_phrase_means_the_spans_that_it_touches(
    planner: Planner, plan: PlanRef, phrase: str, found: list[str]
) -> None:
    assert texts(planner, plan, phrase) == found
    assert planner.why(plan, phrase).resolved_as == "phrase"


def test_exact_bytes_win_over_another_case(planner: Planner) -> None:
    planner.ingest_text("s", "cases.md", "A Fox is here.\n\nA fox is there.\n")
    plan = planner.plan("s", "foxes").ref
    assert texts(planner, plan, "A Fox") == ["A Fox is here."]
    assert texts(planner, plan, "a FOX") == ["A Fox is here.", "A fox is there."]


def test_what_is_asked_is_read_as_span_then_node_then_source_then_phrase(
    planner: Planner, plan: PlanRef
) -> None:
    span = planner.load(plan).spans[0].verdict.candidate
    named = f"See {span.ref} and {span.node_id} and animals.md."
    planner.ingest_text("s", "names.md", named)
    assert planner.why(plan, str(span.ref)).resolved_as == "span"
    assert planner.why(plan, str(span.node_id)).resolved_as == "node"
    assert planner.why(plan, "animals.md").resolved_as == "source"
    assert planner.why(plan, f"{span.ref} and").resolved_as == "phrase"


def test_an_unchanged_span_of_a_newer_version_is_answered_by_the_span_that_its_node_keeps(
    planner: Planner,
) -> None:
    planner.ingest_text("s", "animals.md", DOCUMENT.replace("犬は走る", "犬は泳ぐ"))
    plan = planner.plan("s", "fox").ref
    start = DOCUMENT.encode().index(b"The quick")
    span = f"{start}-{start + 44}"
    (answer,) = planner.why(plan, f"animals.md@2:{span}").answers
    assert str(answer.ref) == f"animals.md@1:{span}"
    assert answer.to_dict()["asked"] == f"animals.md@2:{span}"
    assert [str(a.ref) for a in planner.why(plan, "quick brown").answers] == [f"animals.md@1:{span}"]


def test_a_source_answers_for_each_span_the_best_stage_first(planner: Planner) -> None:
    plan = planner.plan("s", "What do animals do?", budget_tokens=30, k=3, hops=0)
    why = planner.why(plan.ref, "animals.md")
    stages = [answer.stage.value for answer in why.answers]
    selected = [answer.ref for answer in why.answers if answer.stage.value == "selected"]
    assert selected == [span.verdict.candidate.ref for span in plan.spans]
    assert stages == sorted(stages, key=["selected", "over_source_cap", "over_budget", "unpackable",
                                         "below_top_k"].index)  # fmt: skip
    assert stages.count("below_top_k") == 2
    assert sum(why.stages.values()) == len(stages) == 5
    assert why.sentence.startswith("The source animals.md has 5 spans: ")


def test_no_more_answers_than_the_limit_and_the_rest_is_counted(planner: Planner) -> None:
    paragraphs = [f"Item {i} of the list." for i in range(MAX_ANSWERS + 7)]
    planner.ingest_text("s", "list.md", "\n\n".join(paragraphs))
    plan = planner.plan("s", "Item 3", k=5, hops=0).ref
    for what in ("of the list", "list.md"):
        why = planner.why(plan, what)
        assert (len(why.answers), why.more) == (MAX_ANSWERS, 7)
        assert str(MAX_ANSWERS + 7) in why.sentence
        assert why.answers[0].stage.value == "selected"


def test_what_another_scope_holds_answers_exactly_as_what_nobody_holds(planner: Planner) -> None:
    planner.ingest_text("other", "secret.md", "The secret is a heron.")
    foreign = planner.plan("other", "heron").spans[0].verdict.candidate
    plan = planner.plan("s", "fox").ref
    for mine, nobody in (
        (str(foreign.ref), "nothing.md@1:0-22"),
        (str(foreign.node_id), "0" * 32),
        ("secret.md", "nothing.md"),
        ("secret is a heron", "no such phrase"),
        ("SECRET IS A HERON", "NO SUCH PHRASE"),
    ):
        answers = [planner.why(plan, what).to_dict() for what in (mine, nobody)]
        assert answers[0] | {"what": ""} == answers[1] | {"what": ""}
        assert answers[0]["answers"][0]["stage"] == "unknown"


def test_a_plan_of_another_scope_is_unknown(planner: Planner, plan: PlanRef) -> None:
    planner.ingest_text("other", "a.md", "Something else.")
    for ref in (f"other:{plan.plan_id}", "s:00000000-0000-7000-8000-000000000000", f"none:{plan.plan_id}"):
        with pytest.raises(UnknownPlan):
            planner.why(ref, "animals.md")


@pytest.mark.parametrize("what", ["", "a\0b", "x" * 10_001, "\ud800"])
def test_what_no_text_can_hold_is_refused(planner: Planner, plan: PlanRef, what: str) -> None:
    with pytest.raises(RequestError) as refused:
        planner.why(plan, what)
    assert refused.value.detail["field"] == "what"


@pytest.mark.parametrize(
    "what", [f"animals.md@{'9' * 19}:0-1", "animals.md@1:5-5", "animals.md@1:0-1", "x" * 10_000, "%s {must}"]
)
def test_what_looks_like_a_name_and_is_none_is_unknown(planner: Planner, plan: PlanRef, what: str) -> None:
    assert planner.why(plan, what).resolved_as is None


class CountingCursor(psycopg.Cursor[Any]):
    """Counts the statements that name a table of the planner."""

    counted = 0

    def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        self._count(query)
        return super().execute(query, *args, **kwargs)

    def stream(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        self._count(query)
        return super().stream(query, *args, **kwargs)

    def _count(self, query: Any) -> None:
        if not isinstance(query, bytes):  # the opening of a transaction
            type(self).counted += "planner." in query.as_string(self.connection)


def test_the_number_of_statements_does_not_grow_with_what_is_asked_about(
    planner: Planner, database_url: str
) -> None:
    planner.ingest_text("s", "long.md", "\n\n".join(f"Heading {i} says {i * i}." for i in range(200)))
    planner.ingest_text("s", "short.md", "One heading.\n\nAnd two.")
    plan = planner.plan("s", "squares", k=1, hops=1, roots=1).ref
    with ConnectionPool[Any](
        database_url, min_size=1, open=True, kwargs={"autocommit": True, "cursor_factory": CountingCursor}
    ) as pool:
        counting = Planner.from_pool(pool)

        def statements(what: str) -> int:
            before = CountingCursor.counted
            counting.why(plan, what)
            return CountingCursor.counted - before

        assert 5 < statements("short.md") == statements("long.md") <= 11
        assert 5 < statements("And two") == statements(" says ") <= 11
