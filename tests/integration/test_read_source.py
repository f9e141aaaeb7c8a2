"""Reading a source through, bundle after bundle: all of it, in order, once, within each budget."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner import Planner, Settings
from planner.deliver.escape import unescape
from planner.errors import (
    InsufficientEvidence,
    IntegrityError,
    RequestError,
    UnknownScope,
    UnknownSource,
    UnknownSpan,
)
from planner.pipeline.read_source import SourceReading
from planner.tokens import ByteCounter, ScriptCounter
from planner.types import DeliveredItem
from tests.bundle_parser import parse
from tests.integration.graph import Connection, circle_embedder, fresh_scope
from tests.integration.tampering import tampering

COUNTERS = {"utf8-script-v1": ScriptCounter(), "utf8-bytes-v1": ByteCounter()}

PARAGRAPHS = [
    "# The gate",
    "It closes by 10.",
    "Ja, bitte? 日本 👩‍👩‍👧‍👦",
    "It opens by 40, <1a2b3c4d>end or so.",
]


def pages(
    planner: Planner,
    scope: str,
    source_id: str,
    budget: int,
    counter: str | None = None,
    start: str | None = None,
) -> Iterator[SourceReading]:
    """Read on until the end; each bundle parses, is counted and says what is left."""
    while True:
        found = planner.read_source(scope, source_id, budget_tokens=budget, start=start, counter=counter)
        delivery = found.delivery
        assert COUNTERS[delivery.counter].count(delivery.text) == delivery.used <= budget
        envelopes = parse(delivery.text).envelopes
        assert [(e.ids, e.start) for e in envelopes] == [((), item.ref.start) for item in delivery.items]
        assert [e.cut_after for e in envelopes] == [*[0] * (len(envelopes) - 1), found.left_out]
        assert (found.next_start is None) == (found.left_out == 0)
        yield found
        if found.next_start is None:
            return
        start = found.next_start


def shown(found: list[SourceReading]) -> list[tuple[int, int, str]]:
    """Return the pieces, in order, with their versions and where they begin."""
    return [
        (item.ref.version_tx, item.ref.start, unescape(body_of(page, item)))
        for page in found
        for item in page.delivery.items
    ]


def body_of(page: SourceReading, item: DeliveredItem) -> str:
    return page.delivery.text.encode()[item.start : item.end].decode()


def texts(planner: Planner, scope: str, source_id: str) -> list[str]:
    return [planner.slice_text(scope, held.ref) for held in planner.source(scope, source_id).spans]


@pytest.mark.parametrize("counter", list(COUNTERS))
@pytest.mark.parametrize("budget", [120, 150, 200, 1_000])
def test_the_pages_of_a_document_are_its_text(
    planner: Planner, scope: str, budget: int, counter: str
) -> None:
    if counter == "utf8-bytes-v1":
        budget *= 3
    text = "\n\n".join(PARAGRAPHS * 12)
    planner.ingest_text(scope, "a.md", text)
    found = list(pages(planner, scope, "a.md", budget, counter))
    at = 0
    for _, start, piece in shown(found):
        assert text.encode()[at:start].strip(b"#\n ") == b""
        assert text.encode()[start : start + len(piece.encode())] == piece.encode()
        at = start + len(piece.encode())
    assert at == len(text.encode())
    assert (len(found) == 1) == (budget >= 1_000)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    turns=st.lists(
        st.text(
            st.characters(codec="utf-8", exclude_categories=("Cc",), exclude_characters="t"),
            min_size=1,
            max_size=40,
        ),
        min_size=1,
        max_size=8,
    ),
    appended=st.integers(0, 3),
    budget=st.integers(100, 300),
)
def test_the_pages_of_a_conversation_are_its_messages(
    planner: Planner, turns: list[str], appended: int, budget: int
) -> None:
    scope = fresh_scope()
    turns = [turn for turn in turns if turn.strip()] or ["hello"]
    planner.append(
        scope, "talk", [{"content": turn, "speaker": "Ann", "id": f"m{i}"} for i, turn in enumerate(turns)]
    )
    for number in range(appended):
        planner.append(scope, "talk", [{"content": f"More, {number}", "speaker": "Bo", "id": f"n{number}"}])
    joined = "".join(piece for _, _, piece in shown(list(pages(planner, scope, "talk", budget))))
    assert joined == "".join(texts(planner, scope, "talk"))


def test_a_passage_that_does_not_fit_is_read_in_parts(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.txt", "日本語👩‍👩‍👧‍👦" * 60)
    found = list(pages(planner, scope, "a.txt", 90))
    assert len(found) > 3
    assert "".join(piece for _, _, piece in shown(found)) == "日本語👩‍👩‍👧‍👦" * 60


def test_where_nothing_fits_the_budget_that_is_named_suffices(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.md", "👩‍👩‍👧‍👦 is a family.")
    for budget in (1, 20, 40):
        with pytest.raises(InsufficientEvidence) as refused:
            planner.read_source(scope, "a.md", budget_tokens=budget)
    enough = refused.value.sufficient_budget
    assert enough is not None
    assert planner.read_source(scope, "a.md", budget_tokens=enough).delivery.used <= enough
    with pytest.raises(InsufficientEvidence):
        planner.read_source(scope, "a.md", budget_tokens=enough - 1)


def test_the_operators_budget_bounds_a_reading(database_url: str) -> None:
    with Planner.connect(
        database_url, settings=Settings(max_budget=80), embedder=circle_embedder()
    ) as planner:
        planner.ingest_text("s", "a.md", "\n\n".join(PARAGRAPHS))
        found = planner.read_source("s", "a.md", budget_tokens=100_000)
        assert found.delivery.budget == 80
        narrow = Planner.from_pool(
            planner.engine.store.pool, settings=Settings(max_budget=5), embedder=circle_embedder()
        )
        with pytest.raises(InsufficientEvidence, match="max_budget = 5 forbids it") as refused:
            narrow.read_source("s", "a.md", budget_tokens=100)
        assert refused.value.sufficient_budget is None


def test_a_place_is_where_an_envelope_says(planner: Planner, scope: str) -> None:
    text = "\n\n".join(PARAGRAPHS)
    planner.ingest_text(scope, "a.md", text)
    tx = planner.source(scope, "a.md").version_tx
    at = text.encode().index(b"It opens")
    (_, start, piece), *_ = shown([planner.read_source(scope, "a.md", budget_tokens=500, start=f"{tx}:{at}")])
    assert (start, piece) == (at, PARAGRAPHS[-1])
    (_, start, piece), *_ = shown(
        [planner.read_source(scope, "a.md", budget_tokens=500, start=f"{tx}:{at + 3}")]
    )
    assert (start, piece) == (at + 3, PARAGRAPHS[-1][3:])
    inside = text.encode().index("日".encode()) + 1
    with pytest.raises(RequestError, match="inside a character"):
        planner.read_source(scope, "a.md", budget_tokens=500, start=f"{tx}:{inside}")
    with pytest.raises(UnknownSpan):
        planner.read_source(scope, "a.md", budget_tokens=500, start=f"{tx}:{len(text.encode())}")
    with pytest.raises(UnknownSource):
        planner.read_source(scope, "a.md", budget_tokens=500, start=f"{tx + 7}:0")


@pytest.mark.parametrize(
    "start", ["", "1", "1:", ":1", "-1:0", "1:-1", "1:1:1", "٣:١", "9" * 20 + ":0", "9" * 19 + ":0"]
)
def test_what_is_no_place_is_refused(planner: Planner, scope: str, start: str) -> None:
    planner.ingest_text(scope, "a.md", "Text")
    with pytest.raises(RequestError, match="start"):
        planner.read_source(scope, "a.md", budget_tokens=500, start=start)


def test_an_older_version_is_read_by_its_place(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.md", "The old text.")
    old = planner.source(scope, "a.md").version_tx
    planner.ingest_text(scope, "a.md", "The new text.")
    new = planner.read_source(scope, "a.md", budget_tokens=200)
    assert "The new text." in new.delivery.text
    before = planner.read_source(scope, "a.md", budget_tokens=200, start=f"{old}:0")
    assert (before.version_tx, "The old text." in before.delivery.text) == (old, True)
    (envelope,) = parse(before.delivery.text).envelopes
    assert envelope.facts["superseded_by"] == str(new.version_tx)


def test_a_message_that_is_a_source_is_read_alone(planner: Planner, scope: str) -> None:
    for number, said in enumerate(("First", "Second")):
        line = {"content": said, "speaker": "Ann"}
        planner.ingest_conversation(scope, f"m{number}", [line])
    found = planner.read_source(scope, "m0", budget_tokens=200)
    assert "First" in found.delivery.text
    assert "Second" not in found.delivery.text


def test_of_what_is_erased_only_that_is_told(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.md", "A secret.", title="The secret's title")
    planner.erase(scope, "a.md")
    found = planner.read_source(scope, "a.md", budget_tokens=200)
    (envelope,) = parse(found.delivery.text).envelopes
    assert envelope.erased
    assert "secret" not in found.delivery.text
    assert (found.next_start, found.left_out) == (None, 0)


def test_what_is_not_there_is_named(planner: Planner, scope: str) -> None:
    with pytest.raises(UnknownScope):
        planner.read_source(scope, "a.md", budget_tokens=200)
    planner.ingest_text(scope, "a.md", "Text")
    with pytest.raises(UnknownSource):
        planner.read_source(scope, "b.md", budget_tokens=200)
    with pytest.raises(RequestError, match="NUL"):
        planner.read_source(scope, "a\0", budget_tokens=200)


def test_text_that_was_changed_is_not_read(planner: Planner, scope: str, conn: Connection) -> None:
    planner.ingest_text(scope, "a.md", "The true text.")
    tampering(conn, scope)(
        "UPDATE planner.source_version SET body = %s WHERE scope_id = %s", b"The fake text."
    )
    with pytest.raises(IntegrityError):
        planner.read_source(scope, "a.md", budget_tokens=200)


def test_evidence_stands_where_the_plan_saw_it(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.md", "Same at 0\n\nOld at 80")
    planner.ingest_text(scope, "a.md", "Same at 0\n\nNew at 80")
    plan = planner.plan(scope, "at 0", k=1, hops=0)
    ref = planner.evidence_ref(plan.ref, "E1")
    assert ref.version_tx == planner.source(scope, "a.md").version_tx
    assert planner.slice_text(scope, ref) == "Same at 0"
    with pytest.raises(UnknownSpan, match="E99"):
        planner.evidence_ref(plan.ref, "E99")
