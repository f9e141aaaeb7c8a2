"""Which parser reads an input: by its media type, else guessed from its name and content."""

from __future__ import annotations

import json
from collections.abc import Mapping

import regex

from planner.errors import UnsupportedInput
from planner.ingest.conversation import is_message, load_json

MARKDOWN = "text/markdown"
PLAIN = "text/plain"
CONVERSATION = "application/vnd.conversation+json"
IMPORT = "application/vnd.planner.import+jsonl"

MEDIA_TYPES = (MARKDOWN, PLAIN, CONVERSATION, IMPORT)

_BY_EXTENSION = {
    "md": MARKDOWN,
    "markdown": MARKDOWN,
    "mdown": MARKDOWN,
    "mkd": MARKDOWN,
    "txt": PLAIN,
    "text": PLAIN,
    "log": PLAIN,
}
_UNREAD = {
    "htm": "HTML",
    "html": "HTML",
    "xhtml": "HTML",
    "xml": "XML",
    "svg": "SVG",
    "ipynb": "a Jupyter notebook",
    "rtf": "RTF",
    "eml": "e-mail",
    "mbox": "e-mail",
}
_JSON = ("json", "jsonl", "ndjson")

_MARKS = regex.compile(r"^(?:#{1,6} \S|```|~~~|\|.*\|[ \t]*$|[-*] \S|> \S)", regex.MULTILINE)
_SNIFFED_CHARS = 64 * 1024


def media_type_of(source_id: str, text: str) -> str:
    """Guess the media type of canonical text from its source id's extension, else from its content.

    Raises UnsupportedInput for formats that are text but hold markup which no parser here reads.
    """
    name = source_id.rsplit("/", 1)[-1]
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    if extension in _UNREAD:
        raise UnsupportedInput(f"no parser reads {_UNREAD[extension]}; convert it to Markdown or plain text")
    if extension in _BY_EXTENSION:
        return _BY_EXTENSION[extension]
    found = _json_type(text)
    if extension in _JSON:
        if found is None:
            _refuse_broken(text, lines=extension != "json")
            raise UnsupportedInput(
                "this JSON is neither a conversation (messages with `content`) nor an import "
                "(lines with `record`)"
            )
        return found
    return found or (MARKDOWN if _MARKS.search(text[:_SNIFFED_CHARS]) else PLAIN)


def _refuse_broken(text: str, lines: bool) -> None:
    """Raise MalformedInput where JSON is unknown because it is broken."""
    if not lines:
        load_json(text)
        return
    blank = len(text) - len(text.lstrip())
    load_json(text[blank:].split("\n", 1)[0], f"line {text.count(chr(10), 0, blank) + 1}")


def _json_type(text: str) -> str | None:
    opening = text.lstrip()[:1]
    if opening == "[":
        values = _loaded(text)
        return CONVERSATION if isinstance(values, list) and values and is_message(values[0]) else None
    if opening != "{":
        return None
    first = _loaded(text.lstrip().split("\n", 1)[0]) or _loaded(text)
    if isinstance(first, Mapping):
        if "record" in first:
            return IMPORT
        if "messages" in first or is_message(first):
            return CONVERSATION
    return None


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
