"""Conversations: a message is a span, with its speaker or role and its time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from planner.errors import EmptyInput, MalformedInput
from planner.ingest.blocks import Block, assemble
from planner.ingest.facts import instant, storable
from planner.ingest.ids import stem
from planner.types import Batch, JsonObject, SourceDraft

PARSER_VERSION = "conversation/1"
SEPARATOR = "\n\n"
CONTENT_KEYS = ("content", "text")
TIME_KEYS = ("time", "timestamp", "created_at")


@dataclass(frozen=True, slots=True)
class _Message:
    content: str
    speaker: str | None
    time: datetime | None
    attributes: JsonObject


def parse_conversation(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Return the batch of a conversation given as JSON or JSON lines.

    Shapes: an array of messages; an object with `messages` and perhaps `title` and `id`; one message a
    line. The canonical text is the contents joined by a blank line. Raises MalformedInput naming the
    message or line and the field, and EmptyInput where every message is empty.
    """
    header, entries = _entries(draft.text.decode())
    return conversation_batch(draft, header, entries, max_span_chars)


def conversation_batch(
    draft: SourceDraft,
    header: Mapping[str, Any],
    entries: Iterable[tuple[str, int, Any]],
    max_span_chars: int,
) -> Batch:
    """Return the batch of a conversation: what it says of itself, and `(where, position, message)`."""
    messages = [
        message for where, position, entry in entries if (message := _message(entry, where, position))
    ]
    if not messages:
        raise EmptyInput("the conversation holds no message with text")
    title = _text(header, "title", "the conversation")
    identity = _text(header, "id", "the conversation")
    draft = replace(
        draft,
        text=SEPARATOR.join(message.content for message in messages).encode(),
        title=draft.title or title or stem(draft.source_id),
        attributes={**({"conversation_id": identity} if identity else {}), **draft.attributes},
    )
    return assemble(draft, list(_blocks(messages)), max_span_chars)


def messages_of(text: str) -> list[Any]:
    """Return the messages of a conversation in any of its shapes, as they are. Raises MalformedInput."""
    return [entry for _, _, entry in _entries(text)[1]]


def is_message(value: object) -> bool:
    """Tell whether a JSON value looks like a message: an object with content."""
    return isinstance(value, Mapping) and any(key in value for key in CONTENT_KEYS)


def load_json(text: str, where: str = "") -> Any:
    """Return the JSON value of `text`. Raises MalformedInput, naming line and column, where it is none."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = where or f"line {error.lineno}"
        raise MalformedInput(f"{place}, column {error.colno}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise MalformedInput(f"{where or 'the input'}: JSON nested too deeply") from None
    except ValueError as error:
        raise MalformedInput(f"{where or 'the input'}: not valid JSON: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _entries(text: str) -> tuple[Mapping[str, Any], Iterator[tuple[str, int, Any]]]:
    """Return what the conversation says of itself, and `(where, position, message)`."""
    if text.lstrip().startswith("["):
        return {}, _listed(load_json(text))
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict) and "messages" in whole:
        if not isinstance(whole["messages"], list):
            raise MalformedInput("`messages` must be a list of messages", field="messages")
        return whole, _listed(whole["messages"])
    return {}, _lines(text)


def _listed(values: Sequence[Any]) -> Iterator[tuple[str, int, Any]]:
    return ((f"message {position + 1}", position, value) for position, value in enumerate(values))


def _lines(text: str) -> Iterator[tuple[str, int, Any]]:
    numbered = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    for position, (number, line) in enumerate(numbered):
        yield f"line {number}", position, load_json(line, f"line {number}")


def _message(entry: object, where: str, position: int) -> _Message | None:
    """Return a message, None where it is empty."""
    if not isinstance(entry, Mapping):
        raise MalformedInput(f"{where}: a message is an object, not {repr(entry)[:60]}")
    content = _content(entry, where)
    speaker, role = _text(entry, "speaker", where), _text(entry, "role", where)
    time = _time(entry, where)
    if not content.strip():
        return None
    named = {"message_id": _text(entry, "id", where), "speaker": speaker, "role": role, "position": position}
    attributes = {key: value for key, value in named.items() if value is not None}
    return _Message(content, speaker or role, time, attributes)


def _content(entry: Mapping[str, Any], where: str) -> str:
    """Return the text of a message: a string, or the text parts of a list of parts."""
    key = next((key for key in CONTENT_KEYS if key in entry), None)
    if key is None:
        raise MalformedInput(
            f"{where}: a message has `content`, this one has {sorted(entry)[:8]}", field="content"
        )
    value = entry[key]
    if value is None:
        return ""
    if isinstance(value, list):
        value = SEPARATOR.join(_parts(value, f"{where}: {key}"))
    if not isinstance(value, str):
        raise MalformedInput(
            f"{where}: {key} must be text or a list of parts, not {repr(value)[:60]}", field=key
        )
    return storable(value, f"{where}: {key}").replace("\r\n", "\n").replace("\r", "\n")


def _parts(values: Sequence[Any], what: str) -> Iterator[str]:
    for value in values:
        if not isinstance(value, Mapping) or "type" not in value:
            raise MalformedInput(
                f'{what} must hold parts such as {{"type": "text", "text": …}}', field="content"
            )
        if value["type"] == "text":
            text = value.get("text")
            if not isinstance(text, str):
                raise MalformedInput(
                    f"{what}: the text of a part must be text, not {repr(text)[:60]}", field="content"
                )
            yield text


def _text(entry: Mapping[str, Any], key: str, where: str) -> str | None:
    """Return a short text field; numbers, which some exporters give as ids, are written out."""
    value = entry.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise MalformedInput(f"{where}: {key} must be text, not {repr(value)[:60]}", field=key)
    return storable(value, f"{where}: {key}") if value else None


def _time(entry: Mapping[str, Any], where: str) -> datetime | None:
    for key in TIME_KEYS:
        if entry.get(key) is not None:
            try:
                return instant(entry[key])
            except ValueError as error:
                raise MalformedInput(f"{where}: {key}: {error}", field=key) from None
    return None


def _blocks(messages: Sequence[_Message]) -> Iterator[Block]:
    start = 0
    for message in messages:
        end = start + len(message.content.encode())
        yield Block(
            start,
            end,
            "message",
            speaker=message.speaker,
            attributes=message.attributes,
            time=message.time,
        )
        start = end + len(SEPARATOR)
