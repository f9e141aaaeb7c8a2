"""What an envelope says of its source, of erased text, and of text that is not what it was."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from planner.deliver.deliver import deliver
from planner.errors import IntegrityError, UnknownSpan
from planner.tokens import CallableCounter, ScriptCounter
from planner.types import Hit, SpanRef
from tests.bundle_parser import Envelope
from tests.delivery_checks import check
from tests.memory_shelf import MemoryShelf, conversation, plain

COUNTER = ScriptCounter()
FAR = "\n\n<!-- more than what is between neighbours -->\n\n"


def delivered(shelf: MemoryShelf, hits: list[Hit], **options: object) -> list[Envelope]:
    delivery = deliver(hits, shelf, budget=5_000, counter=COUNTER, **options)  # type: ignore[arg-type]
    return check(delivery, shelf, hits, COUNTER)


def test_what_is_known_of_a_source_is_said_once() -> None:
    document, text = plain(
        "notes/a.md",
        ["One.", "Two.", "Three."],
        FAR,
        title="A title",
        uri="https://example.com/a",
        source_class="cache",
        trust="untrusted",
        actor="agent",
        captured_at=datetime(2024, 5, 1, 9, 30, tzinfo=UTC),
        superseded_by=9,
        made_from=("b.md@3:0-10", "c.md@4:5-9"),
        stale=True,
    )
    shelf = MemoryShelf()
    shelf.put(document, {("notes/a.md", 1): text})
    first, second = delivered(shelf, [shelf.hit(1, document, 0), shelf.hit(2, document, 2)])
    assert first.facts == {
        "title": "A title",
        "uri": "https://example.com/a",
        "trust": "untrusted",
        "cache": " cache",
        "stale": " stale",
        "superseded_by": "9",
        "actor": "agent",
        "made_from": "b.md@3:0-10 c.md@4:5-9",
        "captured": "2024-05-01T09:30",
    }
    assert (second.facts, second.source) == ({}, "notes/a.md")


@pytest.mark.parametrize("title", [None, "notes/a.md", "a"])
def test_a_title_that_the_source_id_says_already_is_not_said(title: str | None) -> None:
    document, text = plain("notes/a.md", ["One."], title=title)
    shelf = MemoryShelf()
    shelf.put(document, {("notes/a.md", 1): text})
    [envelope] = delivered(shelf, [shelf.hit(1, document, 0)])
    assert envelope.facts == {"trust": "external"}


@pytest.mark.parametrize(
    ("path", "name"), [((), None), (("T",), None), (("T", "B"), "B"), (("A", "B"), "A / B")]
)
def test_headings_are_said_without_the_title(path: tuple[str, ...], name: str | None) -> None:
    document, text = plain("a.md", ["One."], title="T")
    headed = replace(document.passages[0], heading_path=path)
    shelf = MemoryShelf()
    document = shelf.put(replace(document, passages=(headed,)), {("a.md", 1): text})
    [envelope] = delivered(shelf, [shelf.hit(1, document, 0)])
    assert envelope.name == name


def test_of_a_conversation_in_many_sources_only_what_changes_is_said() -> None:
    document, texts = conversation(
        "chat", [(f"turn {i}", "Alice", None) for i in range(4)], "message", title="Chat"
    )
    third = replace(document.volumes[2], source_class="cache", trust="untrusted")
    volumes = (*document.volumes[:2], third, document.volumes[3])
    shelf = MemoryShelf()
    document = shelf.put(replace(document, volumes=volumes), texts)
    envelopes = delivered(shelf, [shelf.hit(1, document, 0)], unit="record")
    assert [envelope.facts for envelope in envelopes] == [
        {"title": "Chat", "trust": "external"},
        {},
        {"trust": "untrusted", "cache": " cache"},
        {"trust": "external"},
    ]
    assert [envelope.source for envelope in envelopes] == [f"chat/{i}" for i in range(4)]


def test_erased_evidence_is_an_envelope_without_a_body() -> None:
    document, _ = plain("a.md", ["One.", "Two.", "Three."], FAR, title="Gone")
    erased = replace(document.volumes[0], erased=True)
    shelf = MemoryShelf()
    document = shelf.put(replace(document, volumes=(erased,)), {})
    hits = [shelf.hit(1, document, 0), shelf.hit(2, document, 2)]
    for unit in ("chunk", "window", "record", "auto"):
        delivery = deliver(hits, shelf, budget=500, counter=COUNTER, unit=unit)
        envelopes = check(delivery, shelf, hits, COUNTER)
        assert [envelope.erased for envelope in envelopes] == [True, True]
        assert all(item.erased and item.start == item.end for item in delivery.items)
        assert "Gone" not in delivery.text
    assert not shelf.reads


def test_a_version_that_turns_out_to_be_gone_is_erased() -> None:
    document, _ = plain("a.md", ["One."])
    shelf = MemoryShelf()
    shelf.put(document, {})
    [envelope] = delivered(shelf, [shelf.hit(1, document, 0)])
    assert envelope.erased


def test_an_erased_message_is_left_out_of_a_window() -> None:
    document, texts = conversation("chat", [(f"turn {i}", "Alice", None) for i in range(3)], "message")
    volumes = (document.volumes[0], document.volumes[1], replace(document.volumes[2], erased=True))
    shelf = MemoryShelf()
    document = shelf.put(replace(document, volumes=volumes), {**texts, ("chat/2", 3): b""})
    envelopes = delivered(shelf, [shelf.hit(1, document, 1)], unit="window")
    assert [envelope.body for envelope in envelopes] == ["turn 0", "turn 1"]


def test_an_erased_message_beside_a_cut_counts_for_nothing() -> None:
    messages = [(f"{i} " + "words " * 9, "Alice", None) for i in range(9)]
    document, texts = conversation("chat", messages, "message")
    volumes = tuple(replace(v, erased=v.source_id == "chat/3") for v in document.volumes)
    shelf = MemoryShelf()
    document = shelf.put(replace(document, volumes=volumes), {**texts, ("chat/3", 4): b""})
    hits = [shelf.hit(1, document, 3), shelf.hit(2, document, 5)]
    delivery = deliver(hits, shelf, budget=130, counter=COUNTER, unit="record")
    envelopes = check(delivery, shelf, hits, COUNTER)
    assert (envelopes[0].ids, envelopes[0].erased) == (("E1",), True)
    [cut] = delivery.cuts
    assert cut.bytes_left_out == (8 - (len(envelopes) - 1)) * len(messages[0][0])


def test_text_that_does_not_match_its_hash_is_not_delivered() -> None:
    document, text = plain("a.md", ["One.", "Two."], FAR)
    shelf = MemoryShelf()
    shelf.put(document, {("a.md", 1): text.replace(b"Two", b"Too")})
    delivered(shelf, [shelf.hit(1, document, 0)])
    for unit, position in (("chunk", 1), ("window", 0)):
        with pytest.raises(IntegrityError, match=r"a\.md@1:.*does not match its stored hash"):
            delivered(shelf, [shelf.hit(1, document, position)], unit=unit)


def test_a_hit_is_held_against_its_own_hash_too() -> None:
    document, text = plain("a.md", ["One."])
    shelf = MemoryShelf()
    document = shelf.put(replace(document, passages=()), {("a.md", 1): text})
    good = Hit(1, SpanRef("a.md", 1, 0, 4), "a.md")
    delivered(shelf, [good])
    with pytest.raises(IntegrityError):
        delivered(shelf, [replace(good, text_hash=b"\1" * 32)])


def test_a_slice_that_is_cut_short_or_cuts_a_character_is_refused() -> None:
    document, _ = plain("a.md", ["Würde"])
    shelf = MemoryShelf()
    shelf.put(document, {("a.md", 1): b"W"})
    with pytest.raises(IntegrityError, match="1 bytes are stored, not 6"):
        delivered(shelf, [shelf.hit(1, document, 0)])
    shelf.put(document, {("a.md", 1): "Würde".encode()})
    with pytest.raises(IntegrityError, match="cuts into a character"):
        delivered(shelf, [Hit(1, SpanRef("a.md", 1, 0, 2), "a.md")])


def test_a_hit_that_its_document_does_not_hold_is_refused() -> None:
    document, text = plain("a.md", ["One."])
    shelf = MemoryShelf()
    shelf.put(document, {("a.md", 1): text})
    with pytest.raises(UnknownSpan, match=r"the shelf has no document 'b\.md'"):
        delivered(shelf, [replace(shelf.hit(1, document, 0), document="b.md")])


def test_a_delivery_says_how_it_came_about() -> None:
    document, text = plain("a.md", ["One."])
    shelf = MemoryShelf()
    shelf.put(document, {("a.md", 1): text})
    hits = [shelf.hit(1, document, 0)]
    counter = CallableCounter("mine", "upper_bound", len)
    delivery = deliver(hits, shelf, budget=400, counter=counter, plan_hash="ab" * 32, max_frac=0.5)
    assert (delivery.counter, delivery.counter_bound, delivery.budget) == ("mine", "upper_bound", 400)
    assert delivery.options == {"neighbours": 1, "on_misfit": "skip", "max_frac": 0.5}
    assert (delivery.framing_version, delivery.plan_hash) == ("v1", "ab" * 32)
    different = (
        deliver(hits, shelf, budget=401, counter=counter, plan_hash="ab" * 32, max_frac=0.5),
        deliver(hits, shelf, budget=400, counter=counter, plan_hash="ab" * 32),
        deliver(hits, shelf, budget=400, counter=counter, plan_hash="ba" * 32, max_frac=0.5),
        deliver(hits, shelf, budget=400, counter=counter, plan_hash="ab" * 32, max_frac=0.5, neighbours=2),
        deliver(hits, shelf, budget=400, counter=counter, plan_hash="ab" * 32, max_frac=0.5, on_misfit="cut"),
        deliver(hits, shelf, budget=400, counter=counter, plan_hash="ab" * 32, max_frac=0.5, unit="window"),
    )
    assert len({delivery.delivery_hash, *(other.delivery_hash for other in different)}) == 7
