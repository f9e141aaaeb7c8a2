"""Which parser reads an input: by its media type, else guessed from its name and content."""

from __future__ import annotations

import json
from collections.abc import Mapping

import regex

from planner.errors import UnsupportedInput
from planner.ingest.conversation import is_message, load_json
from planner.ingest.languages import BY_EXTENSION as _CODE

MARKDOWN = "text/markdown"
PLAIN = "text/plain"
CONVERSATION = "application/vnd.conversation+json"
IMPORT = "application/vnd.planner.import+jsonl"

CSV = "text/csv"
TSV = "text/tab-separated-values"
HTML = "text/html"
PDF = "application/pdf"
MAIL = "message/rfc822"
MBOX = "application/mbox"
CHATGPT = "application/vnd.chatgpt.export+json"
CLAUDE = "application/vnd.claude.export+json"

AS_BYTES = frozenset({PDF, MAIL, MBOX})
"""What is no text in one encoding: its parser reads the bytes."""

NOT_ONE_TEXT = AS_BYTES | {CHATGPT, CLAUDE}
"""What cannot be the text of one source."""

_BY_EXTENSION = {
    "md": MARKDOWN,
    "markdown": MARKDOWN,
    "mdown": MARKDOWN,
    "mkd": MARKDOWN,
    "txt": PLAIN,
    "text": PLAIN,
    "log": PLAIN,
    "csv": CSV,
    "tsv": TSV,
    "tab": TSV,
    "htm": HTML,
    "html": HTML,
    "xhtml": HTML,
    "pdf": PDF,
    "eml": MAIL,
    "mbox": MBOX,
    **_CODE,
}
_UNREAD = {
    "xml": "XML",
    "svg": "SVG",
    "ipynb": "a Jupyter notebook",
    "rtf": "RTF",
}
_JSON = ("json", "jsonl", "ndjson")

_MARKS = regex.compile(r"^(?:#{1,6} \S|```|~~~|\|.*\|[ \t]*$|[-*] \S|> \S)", regex.MULTILINE)
_PAGE = regex.compile(r"\s*+<(?:!doctype\s+html|html)\b", regex.IGNORECASE)
_SNIFFED_CHARS = 64 * 1024


def media_type_of_bytes(source_id: str, raw: bytes) -> str | None:
    """Guess the media type of an input before it is decoded, from its extension; a PDF from its bytes."""
    if raw.startswith(b"%PDF-"):
        return PDF
    return _BY_EXTENSION.get(_extension(source_id))


def media_type_of(source_id: str, text: str) -> str:
    """Guess the media type of canonical text from its source id's extension, else from its content.

    Raises UnsupportedInput for formats that are text but hold markup which no parser here reads.
    """
    extension = _extension(source_id)
    if extension in _UNREAD:
        raise UnsupportedInput(f"no parser reads {_UNREAD[extension]}; convert it to Markdown or plain text")
    if extension in _BY_EXTENSION:
        return _BY_EXTENSION[extension]
    found = _json_type(text)
    if extension in _JSON:
        if found is None:
            _refuse_broken(text, lines=extension != "json")
            raise UnsupportedInput(
                "this JSON is neither a conversation (messages with `content`), nor an import (lines with "
                "`record`), nor an export of ChatGPT or Claude"
            )
        return found
    if found is None and _PAGE.match(text):
        return HTML
    return found or (MARKDOWN if _MARKS.search(text[:_SNIFFED_CHARS]) else PLAIN)


def _extension(source_id: str) -> str:
    name = source_id.rsplit("/", 1)[-1]
    return name.rpartition(".")[2].lower() if "." in name else ""


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
        return _conversation_type(values[0]) if isinstance(values, list) and values else None
    if opening != "{":
        return None
    first = _loaded(text.lstrip().split("\n", 1)[0]) or _loaded(text)
    if isinstance(first, Mapping):
        if "record" in first:
            return IMPORT
        return CONVERSATION if "messages" in first else _conversation_type(first)
    return None


def _conversation_type(value: object) -> str | None:
    """Tell a message, or a conversation of an export, by its fields."""
    if isinstance(value, Mapping):
        if isinstance(value.get("mapping"), Mapping):
            return CHATGPT
        if isinstance(value.get("chat_messages"), list):
            return CLAUDE
    return CONVERSATION if is_message(value) else None


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
