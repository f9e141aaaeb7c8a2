"""Chunk, window, record and auto: what a hit becomes, and what becomes of hits that lie near each other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from planner.deliver.deliver import deliver
from planner.tokens import ByteCounter, ScriptCounter
from planner.types import NO_TEXT_HASH, Delivery, Document, Hit
from tests.bundle_parser import Envelope
from tests.delivery_checks import check, said
from tests.memory_shelf import MemoryShelf, Said, conversation, plain

COUNTER = ScriptCounter()
FAR = "\n\n<!-- more than what is between neighbours -->\n\n"
PARTS = [f"Paragraph {i} has its say." for i in range(9)]


def shelved(*documents: tuple[Document, bytes]) -> MemoryShelf:
    shelf = MemoryShelf()
    for document, text in documents:
        shelf.put(document, {(document.key, 1): text})
    return shelf


def delivered(shelf: MemoryShelf, hits: list[Hit], budget: int = 5_000, **options: object) -> list[Envelope]:
    delivery = deliver(hits, shelf, budget=budget, counter=COUNTER, **options)  # type: ignore[arg-type]
    return check(delivery, shelf, hits, COUNTER)


def test_a_chunk_is_the_selected_span() -> None:
    document, text = plain("a.md", PARTS)
    shelf = shelved((document, text))
    [envelope] = delivered(shelf, [shelf.hit(1, document, 4)])
    assert (envelope.ids, envelope.units) == (("E1",), {"E1": "chunk"})
    assert envelope.body == PARTS[4]


@pytest.mark.parametrize(("neighbours", "first", "last"), [(0, 4, 4), (1, 3, 5), (2, 2, 6), (99, 0, 8)])
def test_a_window_has_neighbours_on_each_side(neighbours: int, first: int, last: int) -> None:
    document, text = plain("a.md", PARTS)
    shelf = shelved((document, text))
    [envelope] = delivered(shelf, [shelf.hit(1, document, 4)], unit="window", neighbours=neighbours)
    assert envelope.units == {"E1": "window"}
    assert envelope.body == "\n\n".join(PARTS[first : last + 1])


def test_a_record_is_the_whole_source_version() -> None:
    document, text = plain("a.md", PARTS)
    text += b"\n<!-- no passage holds this -->\n"
    longer = replace(document.volumes[0], byte_length=len(text))
    shelf = shelved((replace(document, volumes=(longer,)), text))
    [envelope] = delivered(shelf, [shelf.hit(1, document, 4)], unit="record")
    assert (envelope.units, envelope.body) == ({"E1": "record"}, text.decode())


def test_neighbours_by_position_are_merged_and_others_are_not() -> None:
    document, text = plain("a.md", PARTS)
    shelf = shelved((document, text))
    hits = [shelf.hit(rank, document, position) for rank, position in enumerate((5, 1, 0, 8), start=1)]
    first, second, third = delivered(shelf, hits)
    assert (first.ids, first.body) == (("E2", "E3"), "\n\n".join(PARTS[:2]))
    assert (second.ids, third.ids) == (("E1",), ("E4",))


def test_neighbours_far_apart_are_not_merged() -> None:
    document, text = plain("a.md", PARTS, FAR)
    shelf = shelved((document, text))
    hits = [shelf.hit(rank, document, rank) for rank in (1, 2)]
    assert [envelope.body for envelope in delivered(shelf, hits)] == PARTS[1:3]


def test_windows_that_overlap_are_one_piece() -> None:
    document, text = plain("a.md", PARTS, FAR)
    shelf = shelved((document, text))
    hits = [shelf.hit(1, document, 6), shelf.hit(2, document, 4), shelf.hit(3, document, 0)]
    first, second = delivered(shelf, hits, unit="window")
    assert (first.ids, first.body) == (("E3",), FAR.join(PARTS[:2]))
    assert (second.ids, second.body) == (("E1", "E2"), FAR.join(PARTS[3:8]))


def test_groups_come_by_best_rank_and_pieces_by_position() -> None:
    one, two = plain("a.md", PARTS, FAR), plain("b.md", PARTS, FAR)
    shelf = shelved(one, two)
    places = [(two[0], 7), (one[0], 3), (two[0], 2), (one[0], 1)]
    hits = [shelf.hit(rank, document, i) for rank, (document, i) in enumerate(places, start=1)]
    ids = [(envelope.source, envelope.ids) for envelope in delivered(shelf, hits)]
    assert ids == [("b.md", ("E3",)), ("b.md", ("E1",)), ("a.md", ("E4",)), ("a.md", ("E2",))]


def test_a_thousand_hits_in_one_source_are_one_stretch_without_a_byte_twice() -> None:
    document, text = plain("a.md", [f"Line {i}." for i in range(1_000)], "\n")
    shelf = shelved((document, text))
    order = sorted(range(1_000), key=lambda i: i * 7_919 % 1_000)
    hits = [shelf.hit(rank, document, i) for rank, i in enumerate(order, start=1)]
    [envelope] = delivered(shelf, hits, budget=50_000)
    assert envelope.body.encode() == text
    few = delivered(shelf, hits, budget=1_024)
    assert 40 < len(few) < 100


def test_a_source_of_one_line_is_its_own_window_and_record() -> None:
    document, text = plain("a.txt", ["one line " * 100])
    shelf = shelved((document, text))
    for unit in ("chunk", "window", "record", "auto"):
        [envelope] = delivered(shelf, [shelf.hit(1, document, 0)], unit=unit)
        assert envelope.body.encode() == text


# auto -----------------------------------------------------------------------------------------------


def test_auto_upgrades_one_hit_to_its_record_and_one_to_its_window() -> None:
    small, large = plain("small.md", PARTS), plain("large.md", [part * 9 for part in PARTS], FAR)
    shelf = shelved(small, large)
    hits = [shelf.hit(1, small[0], 4), shelf.hit(2, large[0], 4)]
    record, window = delivered(shelf, hits, budget=370, unit="auto")
    assert (record.units, window.units) == ({"E1": "record"}, {"E2": "window"})
    assert (record.body.encode(), window.body) == (small[1], FAR.join(part * 9 for part in PARTS[3:6]))


def test_auto_gives_every_hit_its_chunk_before_any_gets_more() -> None:
    document, text = plain("a.md", PARTS, FAR)
    shelf = shelved((document, text))
    hits = [shelf.hit(1, document, 0), shelf.hit(2, document, 4), shelf.hit(3, document, 8)]
    chunks = deliver(hits, shelf, budget=5_000, counter=COUNTER)
    envelopes = delivered(shelf, hits, budget=chunks.used, unit="auto")
    assert [envelope.ids for envelope in envelopes] == [("E1",), ("E2",), ("E3",)]
    assert [envelope.units for envelope in envelopes] == [{"E1": "chunk"}, {"E2": "chunk"}, {"E3": "chunk"}]


def test_auto_shows_a_hit_that_did_not_fit_where_another_brought_it() -> None:
    document, text = plain("a.md", ["x" * 60, "y" * 600, "z" * 60])
    shelf = shelved((document, text))
    hits = [shelf.hit(1, document, 1), shelf.hit(2, document, 0), shelf.hit(3, document, 2)]
    everything = deliver(hits, shelf, budget=5_000, counter=COUNTER, unit="auto")
    assert not everything.skipped
    assert [item.evidence for item in everything.items] == [("E1", "E2", "E3")]


# conversations --------------------------------------------------------------------------------------

AT = datetime(2024, 5, 1, 23, 50, tzinfo=UTC)
MESSAGES: list[Said] = [
    (f"Turn {i} of it.", ("Alice", "Bob Ross")[i % 2], AT + timedelta(minutes=3 * i)) for i in range(9)
]


@pytest.mark.parametrize("unit", ["chunk", "window", "record", "auto"])
def test_it_makes_no_difference_how_a_conversation_is_kept(unit: str) -> None:
    seen = []
    for kept in ("one", "appended", "message"):
        document, texts = conversation("chat", MESSAGES, kept)
        shelf = MemoryShelf()
        shelf.put(document, texts)
        hits = [shelf.hit(1, document, 5), shelf.hit(2, document, 2)]
        envelopes = delivered(shelf, hits, unit=unit)
        seen.append(
            [(*message, e.ids, e.units) for message, e in zip(said(envelopes), envelopes, strict=True)]
        )
    assert seen[0] == seen[1] == seen[2]


def test_every_message_of_a_window_is_a_piece_with_its_speaker_and_time() -> None:
    document, texts = conversation("chat", MESSAGES, "message")
    shelf = MemoryShelf()
    shelf.put(document, texts)
    envelopes = delivered(shelf, [shelf.hit(1, document, 4)], unit="window")
    assert said(envelopes) == [
        ("Bob Ross", "2024-05-01T23:59", "Turn 3 of it."),
        ("Alice", "2024-05-02T00:02", "Turn 4 of it."),
        ("Bob Ross", "00:05", "Turn 5 of it."),
    ]
    assert [envelope.ids for envelope in envelopes] == [(), ("E1",), ()]


def test_the_record_of_a_turn_is_the_whole_conversation() -> None:
    document, texts = conversation("chat", MESSAGES, "appended")
    shelf = MemoryShelf()
    shelf.put(document, texts)
    envelopes = delivered(shelf, [shelf.hit(1, document, 4)], unit="record")
    assert [envelope.body for envelope in envelopes] == [message[0] for message in MESSAGES]
    assert envelopes[4].units == {"E1": "record"}


def test_the_parts_of_a_long_message_are_one_piece() -> None:
    document, texts = conversation("chat", [("One half, and the other.", "Alice", None)])
    [whole] = document.passages
    halves = (
        replace(whole, ref=whole.ref._replace(end=9), text_hash=NO_TEXT_HASH),
        replace(whole, ref=whole.ref._replace(start=9), position=1, text_hash=NO_TEXT_HASH),
    )
    shelf = MemoryShelf()
    document = shelf.put(replace(document, passages=halves, length=2), texts)
    [envelope] = delivered(shelf, [shelf.hit(1, document, 1), shelf.hit(2, document, 0)])
    assert (envelope.ids, envelope.body) == (("E1", "E2"), "One half, and the other.")


def test_times_are_said_where_they_change() -> None:
    times = [AT, AT, None, AT, AT + timedelta(days=1)]
    document, texts = conversation("chat", [(f"turn {i}", None, at) for i, at in enumerate(times)])
    shelf = MemoryShelf()
    shelf.put(document, texts)
    envelopes = delivered(shelf, [shelf.hit(1, document, 0)], unit="record")
    told = ["2024-05-01T23:50", None, "undated", "2024-05-01T23:50", "2024-05-02T23:50"]
    assert [envelope.time for envelope in envelopes] == told


def test_a_hit_that_is_no_message_is_its_own_window_and_record() -> None:
    document, texts = conversation("chat", MESSAGES)
    shelf = MemoryShelf()
    shelf.put(document, texts)
    first, second = document.passages[2].ref, document.passages[3].ref
    over_two = Hit(1, first._replace(end=second.end), "chat")
    for unit in ("window", "record", "auto"):
        [envelope] = delivered(shelf, [over_two], unit=unit)
        assert envelope.units == {"E1": "chunk"}


# shares ---------------------------------------------------------------------------------------------


def test_a_source_takes_no_more_than_its_share() -> None:
    one, two = plain("a.md", PARTS, FAR), plain("b.md", PARTS, FAR)
    shelf = shelved(one, two)
    hits = [shelf.hit(rank, one[0], rank) for rank in range(1, 8)] + [shelf.hit(8, two[0], 1)]
    delivery = deliver(hits, shelf, budget=400, counter=COUNTER, max_frac=0.04)
    check(delivery, shelf, hits, COUNTER)
    assert delivery.sources == {"a.md": 14, "b.md": 7}
    assert {skip.reason for skip in delivery.skipped} == {"over_source_cap"}
    assert [skip.evidence for skip in delivery.skipped] == [f"E{rank}" for rank in range(3, 8)]


def test_an_exact_fit_is_taken_and_a_token_less_is_not() -> None:
    document, text = plain("a.md", PARTS, FAR)
    shelf = shelved((document, text))
    hits = [shelf.hit(rank, document, rank) for rank in range(1, 5)]
    for counter in (ScriptCounter(), ByteCounter()):
        whole = deliver(hits, shelf, budget=5_000, counter=counter)

        def at(budget: int, counter: ByteCounter | ScriptCounter = counter) -> Delivery:
            return deliver(hits, shelf, budget=budget, counter=counter)

        assert at(whole.used).text == at(whole.used + 1).text == whole.text
        short = at(whole.used - 1)
        assert [skip.evidence for skip in short.skipped] == ["E4"]
        assert short.used < whole.used
