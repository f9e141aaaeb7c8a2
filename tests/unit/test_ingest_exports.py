"""The exports of ChatGPT and Claude: threads, ids, what a reader saw, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from planner.errors import EmptyInput, MalformedInput
from planner.ingest import parse
from planner.types import Batch
from tests.ledger_checks import check_ledger, texts


def node(
    identity: str, parent: str | None, content: Any, role: str = "user", **message: Any
) -> dict[str, Any]:
    shaped = content if isinstance(content, dict) else {"content_type": "text", "parts": [content]}
    told = {"id": f"m-{identity}", "author": {"role": role}, "content": shaped, "create_time": 1.5, **message}
    return {"id": identity, "parent": parent, "children": [], "message": told}


def chatgpt(*nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    root = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {entry["id"]: entry for entry in (*nodes, root)}
    return {"id": "c1", "title": "Tides", "mapping": mapping, "current_node": nodes[-1]["id"]} | fields


def claude(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"uuid": "u1", "name": "Tides", "chat_messages": list(messages)} | fields


def turn(identity: str, text: str, sender: str = "human", **fields: Any) -> dict[str, Any]:
    return {"uuid": identity, "sender": sender, "text": text, "created_at": "2024-05-01T09:30:00Z"} | fields


def exported(*conversations: object) -> Batch:
    batch = parse(json.dumps(list(conversations)).encode(), source_id="conversations.json")
    check_ledger(batch, 900)
    return batch


def said(batch: Batch) -> list[str]:
    return [text for _, text in texts(batch)]


def test_each_conversation_is_a_source_under_its_own_id_wherever_the_file_is() -> None:
    batch = exported(
        chatgpt(node("a", "root", "一"), id="x"),
        chatgpt(node("a", "root", "two"), id="y", conversation_id="z"),
    )
    assert [(source.source_id, source.title) for source in batch.sources] == [("x", "Tides"), ("z", "Tides")]
    moved = parse(
        json.dumps([chatgpt(node("a", "root", "一"), id="x")]).encode(), source_id="later/conversations.json"
    )
    assert moved.sources[0] == batch.sources[0]
    assert len({entry.node_id for entry in batch.nodes}) == len(batch.nodes) == 4


def test_the_thread_that_was_open_is_read_in_order() -> None:
    thread = [
        node("b", "a", "regenerated"),
        node("a", "root", "asked"),
        node("c", "a", "answered", "assistant"),
    ]
    batch = exported(chatgpt(*thread))
    assert said(batch) == ["asked", "answered"]
    assert [span.speaker for span in batch.sources[0].spans] == ["user", "assistant"]
    assert batch.nodes[2].attributes == {
        "conversation_id": "c1",
        "message_id": "m-c",
        "role": "assistant",
        "position": 1,
    }
    assert batch.nodes[2].valid_from == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)


def test_what_a_reader_did_not_see_is_left_out() -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    thread = [
        node("a", "root", "system prompt", "system"),
        node("b", "a", "hidden", metadata=hidden),
        node("c", "b", {"content_type": "user_editable_context", "user_profile": "profile"}),
        node("d", "c", {"content_type": "thoughts", "thoughts": [{"content": "thought"}]}, "assistant"),
        node("e", "d", {"content_type": "multimodal_text", "parts": [{"asset_pointer": "f"}, "seen"]}),
        node("f", "e", {"content_type": "multimodal_text", "parts": [{"text": "heard"}]}),
        node("g", "f", {"content_type": "code", "language": "python", "text": "print(1)"}, "assistant"),
        node("h", "g", {"content_type": "execution_output", "text": "1"}, "tool", create_time=None),
    ]
    assert said(exported(chatgpt(*thread))) == ["seen", "heard", "print(1)", "1"]


def test_claude_s_messages_are_read_in_order_with_what_was_attached() -> None:
    parts = [
        {"type": "thinking", "thinking": "no"},
        {"type": "text", "text": "three"},
        {"type": "text", "text": "!"},
    ]
    batch = exported(
        claude(
            turn("m1", "When?", content=[], attachments=[{"file_name": "a", "extracted_content": "潮位"}]),
            turn("m2", "placeholder", "assistant", content=parts),
        )
    )
    assert said(batch) == ["When?\n\n潮位", "three\n\n!"]
    assert [(s.source_id, s.title, s.media_type) for s in batch.sources] == [
        ("u1", "Tides", "application/vnd.claude.export+json")
    ]
    assert batch.nodes[1].attributes["message_id"] == "m1"
    assert batch.nodes[2].valid_from == datetime(2024, 5, 1, 9, 30, tzinfo=UTC)


def test_a_branch_of_claude_s_is_left_out_where_messages_name_their_parents() -> None:
    root = "00000000-0000-4000-8000-000000000000"
    thread = [
        turn("m1", "asked", parent_message_uuid=root),
        turn("m2", "first try", "assistant", parent_message_uuid="m1"),
        turn("m3", "second try", "assistant", parent_message_uuid="m1"),
    ]
    assert said(exported(claude(*thread))) == ["asked", "second try"]


def test_a_thread_of_any_length_is_followed() -> None:
    nodes = [node(f"n{n}", f"n{n - 1}" if n else None, f"turn {n}") for n in range(20_000)]
    assert said(exported(chatgpt(*nodes))) == [f"turn {n}" for n in range(20_000)]


def test_conversations_without_text_are_passed_over() -> None:
    empty = chatgpt(node("a", "root", " "), id="e")
    assert [s.source_id for s in exported(empty, chatgpt(node("a", "root", "x"))).sources] == ["c1"]
    with pytest.raises(EmptyInput):
        exported(empty)


@pytest.mark.parametrize(
    ("conversation", "says"),
    [
        ("text", "conversation 2: an object"),
        (chatgpt(node("a", "root", "x"), id=None), "conversation 2: it needs an id"),
        (chatgpt(node("a", "root", "x"), id="é" * 300), "conversation 2: it needs an id"),
        (chatgpt(node("a", "root", "x"), id="a\0b"), "NUL"),
        (chatgpt(node("a", "root", "x"), id="first"), "conversation 2: the id 'first'"),
        (chatgpt(node("a", "a", "x")), "conversation 2: message 'a' is its own ancestor"),
        (chatgpt(node("a", "root", "x"), mapping=[]), "conversation 2: mapping must be an object"),
        (chatgpt(node("a", "root", "x", author="me")), "conversation 2: author must be an object"),
        (chatgpt(node("a", "root", "x\0")), "conversation 2: message 1: content holds a NUL"),
        (chatgpt(node("a", "root", "x", create_time="soon")), "conversation 2: message 1: time"),
        (chatgpt(node("a", "root", "x"), title=[1]), "conversation 2: the conversation: title"),
    ],
)
def test_a_bad_conversation_is_refused_by_its_number(conversation: object, says: str) -> None:
    with pytest.raises(MalformedInput, match=says):
        exported(chatgpt(node("a", "root", "fine"), id="first"), conversation)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"chat_messages": {}}, "chat_messages"),
        ({"chat_messages": ["x"]}, "chat_messages"),
        ({"chat_messages": [turn("m", "x", content="x")]}, "content must be a list"),
        ({"chat_messages": [turn("m", "x", created_at="soon")]}, "message 1: time"),
        ({"uuid": 7}, "it needs an id"),
    ],
)
def test_a_bad_conversation_of_claude_s_is_refused_by_its_number(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(MalformedInput, match=f"conversation 2: .*{says}"):
        exported(claude(turn("m", "fine")), claude(turn("m", "x")) | {"uuid": "u2"} | fields)
