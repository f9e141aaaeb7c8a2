"""The exports of ChatGPT and Claude (`conversations.json`): each conversation becomes a source of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.errors import EmptyInput, MalformedInput
from planner.ingest.conversation import SEPARATOR, conversation_batch, load_json
from planner.ingest.facts import storable
from planner.ingest.ids import MAX_ID_BYTES
from planner.ingest.media import CHATGPT
from planner.types import Batch, JsonObject, SourceDraft

PARSER_VERSION = "export/1"

Conversation = Mapping[str, Any]
Thread = Callable[[Conversation], Iterable[JsonObject]]

_SHOWN = ("text", "multimodal_text", "code", "execution_output", "tether_quote")
"""The contents of ChatGPT's messages that a reader of the conversation sees."""


def parse_export(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Return one batch with a source for each conversation of an export that holds text.

    A source's id is the conversation's, wherever the file is, so that a later export makes new versions. Of
    a conversation that branched, the thread that was last open is read. Raises MalformedInput naming the
    conversation and the message, EmptyInput where no conversation holds text.
    """
    is_chatgpt = draft.media_type == CHATGPT
    title, thread = ("title", _chatgpt) if is_chatgpt else ("name", _claude)
    loaded = load_json(draft.text.decode())
    batches: dict[str, Batch] = {}
    for number, conversation in enumerate(loaded if isinstance(loaded, list) else [loaded], 1):
        where = f"conversation {number}"
        if not isinstance(conversation, Mapping):
            raise MalformedInput(f"{where}: an object, not {repr(conversation)[:60]}")
        identity = _identity(conversation, where)
        if identity in batches:
            raise MalformedInput(f"{where}: the id {identity!r} is that of a conversation before", field="id")
        about = {"title": conversation.get(title), "id": identity}
        try:
            entries = ((f"message {n + 1}", n, m) for n, m in enumerate(thread(conversation)))
            source = replace(draft, source_id=identity)
            batches[identity] = conversation_batch(source, about, entries, max_span_chars)
        except EmptyInput:
            continue
        except MalformedInput as error:
            raise MalformedInput(f"{where}: {error}", **error.detail) from None
    if not batches:
        raise EmptyInput("the export holds no conversation with text")
    parts = batches.values()
    return Batch(
        sources=tuple(source for part in parts for source in part.sources),
        nodes=tuple(node for part in parts for node in part.nodes),
        edges=tuple(edge for part in parts for edge in part.edges),
    )


def _identity(conversation: Conversation, where: str) -> str:
    for key in ("conversation_id", "id", "uuid"):
        value = conversation.get(key)
        if isinstance(value, str) and 1 <= len(value.encode("utf-8", "replace")) <= MAX_ID_BYTES:
            return storable(value, f"{where}: {key}")
    raise MalformedInput(
        f"{where}: it needs an id of 1 to {MAX_ID_BYTES} bytes, and has {sorted(conversation)[:8]}"
    )


def _chatgpt(conversation: Conversation) -> Iterator[JsonObject]:
    """Yield the messages that a reader sees, from the root to `current_node`, else to the last node."""
    nodes = _object(conversation, "mapping")
    last = conversation.get("current_node")
    if last not in nodes:
        last = next(reversed(list(nodes)), None)
    for node in _up(nodes, last, "parent"):
        message = node.get("message") or {}
        author, content = _object(message, "author"), _object(message, "content")
        if author.get("role") == "system" or content.get("content_type") not in _SHOWN:
            continue
        if _object(message, "metadata").get("is_visually_hidden_from_conversation"):
            continue
        yield {
            "id": message.get("id"),
            "role": author.get("role"),
            "time": message.get("create_time"),
            "content": _joined(content["parts"] if "parts" in content else [content.get("text")]),
        }


def _claude(conversation: Conversation) -> Iterator[JsonObject]:
    """Yield the messages up to the last one: its thread where they name their parents, else all in order."""
    listed = conversation.get("chat_messages")
    if not isinstance(listed, list) or not all(isinstance(message, Mapping) for message in listed):
        raise MalformedInput("`chat_messages` must be a list of messages", field="chat_messages")
    known = {message.get("uuid"): message for message in listed}
    if listed and listed[-1].get("parent_message_uuid") in known:
        listed = _up(known, listed[-1].get("uuid"), "parent_message_uuid")
    for message in listed:
        parts = [part for part in _list(message, "content") if part.get("type") == "text"]
        written = _joined(parts or [message.get("text")])
        attached = _joined({"text": file.get("extracted_content")} for file in _list(message, "attachments"))
        yield {
            "id": message.get("uuid"),
            "role": message.get("sender"),
            "time": message.get("created_at"),
            "content": SEPARATOR.join(filter(None, (written, attached))),
        }


def _up(nodes: Mapping[Any, Any], last: object, parent: str) -> list[Conversation]:
    """Return the nodes from the root down to `last`. Raises MalformedInput where parents go in a circle."""
    thread: dict[object, Conversation] = {}
    while last in nodes:
        if last in thread:
            raise MalformedInput(f"message {str(last)[:60]!r} is its own ancestor", field=parent)
        thread[last] = _object(nodes, last)
        last = thread[last].get(parent)
    return list(reversed(thread.values()))


def _joined(parts: Iterable[Any]) -> str:
    """Return the texts among the parts of a message; images and the like have none."""
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return SEPARATOR.join(text for text in texts if isinstance(text, str) and text.strip())


def _object(holder: Mapping[Any, Any], key: object) -> Conversation:
    value = holder.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise MalformedInput(f"{key} must be an object, not {repr(value)[:60]}", field=str(key))
    return value or {}


def _list(holder: Conversation, key: str) -> list[Conversation]:
    value = holder.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise MalformedInput(f"{key} must be a list of objects", field=key)
    return value
