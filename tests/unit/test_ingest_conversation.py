"""Conversations: shapes, speakers, times, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from planner.errors import EmptyInput, MalformedInput, NulInput
from planner.ingest import parse
from planner.types import Batch

MESSAGES: list[dict[str, Any]] = [
    {"id": "m1", "speaker": "Aki", "time": "2024-05-01T09:30:00+09:00", "content": "潮は？\r\nHigh water?"},
    {"role": "assistant", "timestamp": 1_714_555_800, "content": " 03:12 tomorrow. "},
    {"role": "user", "content": ""},
    {"role": "tool", "content": None},
    {
        "role": "user",
        "content": [{"type": "text", "text": "And"}, {"type": "image_url"}, {"type": "text", "text": "now?"}],
    },
]
SHAPES = {
    "array": json.dumps(MESSAGES),
    "object": json.dumps({"messages": MESSAGES}, indent=1),
    "lines": "\n".join(json.dumps(message) for message in MESSAGES) + "\n",
}


def conversation(entries: object) -> Batch:
    return parse(json.dumps(entries).encode(), source_id="chat.json")


def texts(batch: Batch) -> list[str]:
    (source,) = batch.sources
    return [source.text[span.start : span.end].decode() for span in source.spans]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_messages(shape: str) -> None:
    batch = parse(SHAPES[shape].encode(), source_id="chat.jsonl")
    assert batch.sources[0].text.decode() == "潮は？\nHigh water?\n\n 03:12 tomorrow. \n\nAnd\n\nnow?"
    assert texts(batch) == ["潮は？\nHigh water?", "03:12 tomorrow.", "And\n\nnow?"]
    assert {span.kind for span in batch.sources[0].spans} == {"message"}
    assert [span.speaker for span in batch.sources[0].spans] == ["Aki", "assistant", "user"]


def test_a_message_node_says_who_when_and_where() -> None:
    whole, first, second, third = conversation(MESSAGES).nodes
    morning = datetime(2024, 5, 1, 0, 30, tzinfo=UTC)
    assert (first.label, first.valid_from, first.observed_at, first.valid_to) == (
        "Aki",
        morning,
        morning,
        None,
    )
    assert first.attributes == {"message_id": "m1", "speaker": "Aki", "position": 0}
    assert second.valid_from == datetime(2024, 5, 1, 9, 30, tzinfo=UTC)
    assert third.attributes == {"role": "user", "position": 4}
    assert third.valid_from is None
    assert (whole.kind, whole.spans) == ("source", ())


def test_title_and_id_of_the_conversation_are_kept() -> None:
    batch = conversation({"title": "Tides", "id": 7, "messages": [{"content": "x"}]})
    assert batch.sources[0].title == "Tides"
    assert [node.attributes.get("conversation_id") for node in batch.nodes] == ["7", "7"]


def test_a_long_message_is_cut_and_each_part_keeps_its_facts() -> None:
    batch = conversation([{"id": "m", "speaker": "Aki", "time": 0, "content": "A sentence here. " * 200}])
    assert len(batch.nodes) > 3
    assert "".join(texts(batch)) == ("A sentence here. " * 200).strip()
    assert {(n.label, n.attributes["message_id"], n.valid_from) for n in batch.nodes[1:]} == {
        ("Aki", "m", datetime(1970, 1, 1, tzinfo=UTC))
    }


def test_a_turn_carries_its_conversation_and_position() -> None:
    (source,) = parse(b"hello", source_id="t", conversation_id="c", position=0).sources
    assert (source.conversation_id, source.position) == ("c", 0)


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024-05-01T10:00:00", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("2024-05-01T10:00:00Z", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        (0.5, datetime(1970, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_times_are_utc(time: object, expected: datetime) -> None:
    assert conversation([{"content": "x", "created_at": time}]).nodes[1].observed_at == expected


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("hi", "message 2"),
        ({"role": "user"}, "message 2: a message has `content`"),
        ({"content": 5}, "message 2: content"),
        ({"content": ["x"]}, "message 2: content"),
        ({"content": [{"type": "text", "text": 1}]}, "message 2: content"),
        ({"content": "x", "speaker": ["a"]}, "message 2: speaker"),
        ({"content": "x", "role": True}, "message 2: role"),
        ({"content": "x\0"}, "message 2: content holds a NUL"),
        ({"content": "\ud800"}, "message 2: content holds a lone surrogate"),
        ({"content": "x", "id": "\0"}, "message 2: id"),
        ({"content": "x", "time": "1:56 pm on 8 May"}, "message 2: time"),
        ({"content": "x", "time": 1e300}, "message 2: time"),
        ({"content": "x", "time": True}, "message 2: time"),
        ({"content": "x", "time": "0001-01-01T00:00:00+14:00"}, "message 2: time"),
    ],
)
def test_a_bad_message_is_refused_by_its_number_and_field(message: object, says: str) -> None:
    with pytest.raises(MalformedInput, match=says):
        conversation([{"content": "fine"}, message])


def test_a_bad_line_is_refused_by_its_number() -> None:
    with pytest.raises(MalformedInput, match="line 3, column"):
        parse(b'{"content": "x"}\n\n{"content": "y"\n', source_id="chat.jsonl")
    with pytest.raises(MalformedInput, match="line 2: time"):
        parse(b'{"content": "x"}\n{"content": "y", "time": "soon"}\n', source_id="chat.jsonl")


@pytest.mark.parametrize(
    "entries", [[{"content": " \n"}, {"content": None}], {"messages": [{"content": ""}]}]
)
def test_a_conversation_without_text_is_empty(entries: object) -> None:
    with pytest.raises(EmptyInput):
        conversation(entries)


def test_messages_must_be_a_list() -> None:
    with pytest.raises(MalformedInput, match="messages"):
        conversation({"messages": {"content": "x"}})


def test_a_nul_byte_in_the_file_is_named_before_it_is_parsed() -> None:
    with pytest.raises(NulInput):
        parse(b'[{"content": "x\0"}]', source_id="chat.json")
