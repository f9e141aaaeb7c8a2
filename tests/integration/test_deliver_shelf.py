"""The shelf: what surrounds a span, as of a plan, however its source was stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner import Planner
from planner.hashing import text_hash
from planner.ingest import scope_id
from planner.ingest.media import IMPORT
from planner.store.shelf import ScopeShelf
from planner.types import Document, Passage, SpanRef, Volume
from tests.integration.graph import Connection, fresh_scope

LATEST = 10**6
TURNS: list[dict[str, Any]] = [
    {"speaker": "Ada", "role": "user", "content": "Hello.", "time": "2024-05-01T09:30:00Z"},
    {"speaker": "Bo", "content": "ok"},
    {"role": "assistant", "content": "Ja, bitte? 日本", "time": "2024-05-01T09:31:00Z"},
    {"speaker": "Bo", "content": "ok", "time": "2024-05-02T00:00:00Z"},
    {"content": "Who is there?"},
    {"speaker": "Ada", "role": "user", "content": "A long one. " * 120},
    {"speaker": "Ada", "role": "user", "content": "The end."},
]


@contextmanager
def opened(planner: Planner, scope: str, as_of: int = LATEST) -> Iterator[ScopeShelf]:
    identity = scope_id(scope)
    with planner.engine.store.scoped(identity, "reader", snapshot=True) as conn:
        yield ScopeShelf(conn, identity, as_of)


def spans(planner: Planner, scope: str, source_id: str) -> list[SpanRef]:
    return [held.ref for held in planner.source(scope, source_id).spans]


def only(shelf: ScopeShelf, refs: Sequence[SpanRef], neighbours: int | None) -> Document:
    """Return the one document that holds all these spans."""
    (document,) = shelf.documents(refs, neighbours).values()
    return document


def texts(shelf: ScopeShelf, document: Document) -> list[str]:
    return [(data or b"").decode() for data in shelf.read([p.ref for p in document.passages])]


def volume_of(document: Document, passage: Passage) -> Volume:
    (volume,) = [v for v in document.volumes if (v.source_id, v.version_tx) == passage.ref[:2]]
    return volume


def whole(planner: Planner, scope: str, turns: Sequence[dict[str, Any]]) -> None:
    planner.ingest_conversation(scope, "talk", turns)


def again(planner: Planner, scope: str, turns: Sequence[dict[str, Any]]) -> None:
    """Store all of it each time, as exporters do: old turns keep their nodes."""
    planner.ingest_conversation(scope, "talk", turns[:2])
    planner.ingest_conversation(scope, "talk", turns)


def appended(planner: Planner, scope: str, turns: Sequence[dict[str, Any]]) -> None:
    for turn in turns:
        planner.append(scope, "talk", [turn])


def separately(planner: Planner, scope: str, turns: Sequence[dict[str, Any]]) -> None:
    """Store a source a message, in any order, each a conversation of one message."""
    lines = [
        {
            "record": "source",
            "source_id": f"m{(7 * i) % 11}",
            "text": json.dumps([turn]),
            "media_type": "application/vnd.conversation+json",
            "conversation_id": "talk",
            "position": i,
        }
        for i, turn in enumerate(turns)
    ]
    planner.ingest_text(scope, "talk.jsonl", "\n".join(map(json.dumps, lines[::-1])), media_type=IMPORT)


def sources_in_order(conn: Connection, scope: str) -> list[str]:
    rows = conn.execute(
        "SELECT source_id FROM planner.source WHERE scope_id = %s ORDER BY position, source_id",
        (scope_id(scope),),
    )
    return [row[0] for row in rows]


def described(shelf: ScopeShelf, document: Document) -> list[Any]:
    """Return what there is to tell of a conversation's passages, wherever they are stored."""
    fields = [(p.position, p.kind, p.speaker, p.at, p.text_hash) for p in document.passages]
    return [document.conversation, document.length, *zip(fields, texts(shelf, document), strict=True)]


@pytest.mark.parametrize("neighbours", [0, 1, 3, None])
def test_a_conversation_is_the_same_document_however_it_was_stored(
    planner: Planner, conn: Connection, neighbours: int | None
) -> None:
    told = []
    for store in (whole, again, appended, separately):
        scope = fresh_scope(store.__name__)
        store(planner, scope, TURNS)
        refs = [ref for name in sources_in_order(conn, scope) for ref in spans(planner, scope, name)]
        with opened(planner, scope) as shelf:
            told.append(described(shelf, only(shelf, [refs[3], refs[-1]], neighbours)))
    assert told == [told[0]] * 4
    assert told[0][0] is True
    assert told[0][1] == len(refs) > len(TURNS)  # the long message is of two pieces
    speakers = [row[0][2] for row in told[0][2:]]
    if neighbours is None:
        assert speakers[:5] == ["Ada (user)", "Bo", "assistant", "Bo", None]
        assert [row[1] for row in told[0][2:7]] == [turn["content"] for turn in TURNS[:5]]
        assert [row[0][3] is not None for row in told[0][2:7]] == [True, False, True, True, False]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    places=st.sets(st.integers(0, len(TURNS)), min_size=1, max_size=3),
    neighbours=st.integers(0, 9),
    store=st.sampled_from([whole, again, appended, separately]),
)
def test_a_window_is_what_lies_near_in_the_whole(
    planner: Planner, conn: Connection, places: set[int], neighbours: int, store: Any
) -> None:
    scope = f"property-{store.__name__}"
    if scope not in {held.name for held in planner.scopes()}:
        store(planner, scope, TURNS)
    refs = [ref for name in sources_in_order(conn, scope) for ref in spans(planner, scope, name)]
    with opened(planner, scope) as shelf:
        every = only(shelf, [refs[0]], None)
        near = only(shelf, [refs[place] for place in places], neighbours)
    assert [p.position for p in every.passages] == list(range(every.length))
    assert [p.ref for p in every.passages] == refs
    wanted = [p for p in every.passages if any(abs(p.position - place) <= neighbours for place in places)]
    assert list(near.passages) == wanted
    assert (near.key, near.length) == (every.key, every.length)
    assert {p.ref[:2] for p in wanted} == {(v.source_id, v.version_tx) for v in near.volumes}


def test_a_document_has_headings_labels_and_neighbours_by_ordinal(planner: Planner, scope: str) -> None:
    text = "# Top\n\nOne.\n\n## Below\n\nTwo.\n\nThree.\n"
    planner.ingest_text(scope, "a.md", text, title="A", uri="https://a.example", trust="internal")
    refs = spans(planner, scope, "a.md")
    with opened(planner, scope) as shelf:
        document = only(shelf, [refs[3]], 1)
        assert texts(shelf, document) == ["Below", "Two.", "Three."]
    assert [p.heading_path for p in document.passages][1:] == [("Top", "Below")] * 2
    assert [p.position for p in document.passages] == [2, 3, 4]
    assert (document.conversation, document.length) == (False, 5)
    (volume,) = document.volumes
    assert (volume.title, volume.uri, volume.trust, volume.actor) == (
        "A",
        "https://a.example",
        "internal",
        "library",
    )
    assert (volume.byte_length, volume.source_class, volume.erased) == (len(text), "truth", False)
    assert volume.captured_at is None
    assert volume.superseded_by is None


def test_any_range_can_be_read_and_none_beyond_a_text(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.txt", "First.\n\nSecond.")
    (ref, _) = spans(planner, scope, "a.txt")
    ranges = [ref._replace(start=3, end=10), ref._replace(start=0, end=15), ref._replace(end=16)]
    with opened(planner, scope) as shelf:
        assert shelf.read([*ranges, ref._replace(version_tx=9)]) == [
            b"st.\n\nSe",
            b"First.\n\nSecond.",
            None,
            None,
        ]
        assert shelf.read([]) == []


def test_no_source_has_the_key_of_a_conversation(planner: Planner, scope: str) -> None:
    separately(planner, scope, TURNS[:1])
    for name in ("talk", "conversation:talk", "source:talk", "talk@1"):
        planner.ingest_text(scope, name, f"The text of {name}.")
    refs = [spans(planner, scope, held.source_id)[0] for held in planner.sources(scope).sources]
    with opened(planner, scope) as shelf:
        keys = [shelf.key(ref) for ref in refs]
        assert list(shelf.documents(refs, 0)) == keys
    assert len(set(keys)) == len(keys) == 5


def test_what_came_after_the_plan_is_not_there_and_is_told(planner: Planner, scope: str) -> None:
    appended(planner, scope, TURNS[:2])
    first, second = spans(planner, scope, "talk")
    with opened(planner, scope, as_of=2) as shelf:
        before = only(shelf, [first], None)
    appended(planner, scope, TURNS[2:4])
    with opened(planner, scope, as_of=2) as shelf:
        assert only(shelf, [first], None) == before
        assert [p.ref for p in before.passages] == [first, second]
    assert {volume.superseded_by for volume in before.volumes} == {
        None
    }  # it goes on, and nothing is replaced
    planner.ingest_conversation(scope, "talk", [{"content": "Another altogether."}])
    with opened(planner, scope, as_of=2) as shelf:
        later = only(shelf, [first], None)
        assert texts(shelf, later) == [turn["content"] for turn in TURNS[:2]]
    assert {volume.superseded_by for volume in later.volumes} == {5}


def hashed(planner: Planner, scope: str, refs: Sequence[SpanRef]) -> list[tuple[SpanRef, bytes]]:
    return [(ref, text_hash(planner.slice_text(scope, ref).encode())) for ref in refs]


def test_an_unchanged_paragraph_stands_where_it_is_as_of_the_plan(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.md", "Same.\n\nOld.\n\nLast.")
    old = spans(planner, scope, "a.md")
    planner.ingest_text(scope, "a.md", "New.\n\nSame.\n\nLast.")
    new = spans(planner, scope, "a.md")
    cited = hashed(planner, scope, [old[0], new[0], old[2]])
    with opened(planner, scope) as shelf:
        standing = shelf.standing(cited)
        assert standing == [new[1], new[0], new[2]]
        assert texts(shelf, only(shelf, standing, 1)) == ["New.", "Same.", "Last."]
    with opened(planner, scope, as_of=1) as shelf:
        assert shelf.standing([cited[0]]) == [old[0]]
        document = only(shelf, [old[0]], 1)
        assert texts(shelf, document) == ["Same.", "Old."]
        assert document.volumes[0].superseded_by == 2


def test_of_equal_texts_the_one_of_the_same_number_stands(planner: Planner, scope: str) -> None:
    planner.ingest_conversation(scope, "talk", [TURNS[1], TURNS[0], TURNS[3]])
    old = spans(planner, scope, "talk")
    planner.ingest_conversation(scope, "talk", [TURNS[4], TURNS[1], TURNS[0], TURNS[3], TURNS[6]])
    new = spans(planner, scope, "talk")
    with opened(planner, scope) as shelf:
        assert shelf.standing(hashed(planner, scope, old)) == new[1:4]


def test_a_text_that_is_gone_from_the_newer_version_stays_where_it_is(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.md", "One.\n\nTwo.")
    one, two = spans(planner, scope, "a.md")
    planner.ingest_text(scope, "a.md", "Two.")
    with opened(planner, scope) as shelf:
        standing = shelf.standing(hashed(planner, scope, [one, two]))
        assert standing == [one, spans(planner, scope, "a.md")[0]]
        documents = shelf.documents(standing, 1)
        assert [texts(shelf, document) for document in documents.values()] == [["One.", "Two."], ["Two."]]


def test_of_an_erased_source_only_the_fact_stays(planner: Planner, scope: str) -> None:
    planner.ingest_conversation(scope, "talk", TURNS[:3], title="Secret", uri="secret:")
    refs = spans(planner, scope, "talk")
    planner.erase(scope, "talk")
    with opened(planner, scope) as shelf:
        document = only(shelf, [refs[1]], 1)
        assert shelf.read(refs) == [None] * 3
    assert [p.ref for p in document.passages] == refs
    assert {(p.speaker, p.at) for p in document.passages} == {(None, None)}
    (volume,) = document.volumes
    told = (volume.erased, volume.title, volume.uri, volume.actor, volume.captured_at)
    assert told == (True, None, None, None, None)


def test_an_erased_turn_is_no_longer_of_its_conversation_unless_cited(
    planner: Planner, conn: Connection, scope: str
) -> None:
    separately(planner, scope, TURNS[:4])
    names = sources_in_order(conn, scope)
    refs = [spans(planner, scope, name)[0] for name in names]
    planner.erase(scope, names[1])
    with opened(planner, scope) as shelf:
        document = only(shelf, [refs[2]], 1)
        assert [p.ref for p in document.passages] == [refs[0], refs[2], refs[3]]
        assert [p.position for p in document.passages] == [0, 1, 2]
    with opened(planner, scope) as shelf:
        cited = only(shelf, [refs[1], refs[3]], 1)
        assert [(p.position, p.ref) for p in cited.passages] == list(enumerate(refs))
        assert only(shelf, [refs[3]], None) == cited  # as it was, whichever spans are asked about next
        assert [volume_of(cited, p).erased for p in cited.passages] == [False, True, False, False]


def test_a_withdrawn_turn_is_of_its_conversation_as_of_before(
    planner: Planner, scope: str, tmp_path: Path
) -> None:
    for i in range(3):
        about = {"source_id": f"m{i}", "conversation_id": "talk", "position": i}
        line = {"record": "source", "text": f"Turn {i}.", **about}
        (tmp_path / f"m{i}.jsonl").write_text(json.dumps(line), encoding="utf-8")
    planner.ingest(scope, tmp_path)
    (tmp_path / "m1.jsonl").unlink()
    planner.ingest(scope, tmp_path, sync=True)
    (ref,) = spans(planner, scope, "m2")
    for as_of, turns in ((3, ["Turn 0.", "Turn 1.", "Turn 2."]), (4, ["Turn 0.", "Turn 2."])):
        with opened(planner, scope, as_of) as shelf:
            assert texts(shelf, only(shelf, [ref], 2)) == turns


def test_a_cache_says_what_it_was_made_from_and_when_that_changed(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "a.md", "One.\n\nTwo.", trust="untrusted")
    planner.ingest_text(scope, "b.md", "Three.")
    made_from = [*spans(planner, scope, "a.md"), *spans(planner, scope, "b.md")]
    planner.derive(scope, "One to three.", made_from, source_id="sum")
    (ref,) = spans(planner, scope, "sum")

    def volume() -> Volume:
        with opened(planner, scope) as shelf:
            return only(shelf, [ref], 0).volumes[0]

    fresh = volume()
    assert (fresh.source_class, fresh.trust, fresh.stale) == ("cache", "untrusted", False)
    assert fresh.made_from == tuple(str(held) for held in made_from)
    planner.ingest_text(scope, "b.md", "Four.")
    assert volume().stale is True


def test_a_version_that_was_pruned_is_alone_and_gone(planner: Planner, scope: str) -> None:
    for text in ("One.", "Two.", "Three."):
        planner.ingest_text(scope, "a.md", text)
    ref = SpanRef("a.md", 1, 0, 4)
    planner.prune_versions(scope, "a.md", keep_versions=1)
    with opened(planner, scope) as shelf:
        assert shelf.standing([(ref, text_hash(b"One."))]) == [ref]
        document = only(shelf, [ref], 3)
        assert shelf.read([ref]) == [None]
    assert [p.ref for p in document.passages] == [ref]
    (volume,) = document.volumes
    assert (volume.version_tx, volume.erased) == (1, True)


def test_another_scope_has_nothing_of_it(planner: Planner, scope: str) -> None:
    separately(planner, scope, TURNS[:3])
    other = fresh_scope("other")
    planner.ingest_text(other, "x.md", "Elsewhere.")
    refs = [spans(planner, scope, held.source_id)[0] for held in planner.sources(scope).sources]
    unknown = [ref._replace(source_id=f"no-{ref.source_id}") for ref in refs]
    with opened(planner, other) as shelf:
        for asked in (refs, unknown):
            found = shelf.documents(asked, None)
            assert [d.passages[0].ref for d in found.values()] == asked
            assert all(d.volumes[0].erased and d.length == 1 for d in found.values())
            assert shelf.read(asked) == [None] * 3


def test_spans_in_order_are_neighbours_in_every_source(planner: Planner, scope: str) -> None:
    """What `around` relies on: by their places in the text, spans have the order of their ordinals."""
    planner.ingest_text(
        scope, "a.py", "def f():\n    return 1\n\n\nclass C:\n    def g(self):\n        pass\n"
    )
    planner.ingest_text(scope, "a.csv", "a,b\n1,2\n3,4\n")
    for held in planner.sources(scope).sources:
        refs = spans(planner, scope, held.source_id)
        assert len(refs) > 1
        assert all(one < other for one, other in pairwise(refs))
