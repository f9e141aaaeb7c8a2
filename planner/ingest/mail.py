"""E-mail: each mail of a file is a message, by whom it is from and when, below its subject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from email.utils import parseaddr, parsedate_to_datetime

import regex

from planner.errors import EmptyInput, MalformedInput
from planner.ingest.extracted import Extract, short
from planner.ingest.facts import instant, storable
from planner.ingest.html import html_text
from planner.ingest.ids import stem
from planner.ingest.media import MBOX
from planner.types import Batch, JsonObject, SourceDraft

PARSER_VERSION = "mail/1"

_FROM_LINE = regex.compile(rb"(?:\A|(?<=\n\r?\n))From [^\n]*+\n")
_QUOTED_FROM = regex.compile(rb"^>(>*+From )", regex.MULTILINE)


def parse_mail(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Return the batch of a mail, or of all mails of an mbox, in the file's order.

    The canonical text is each subject, as a heading where it differs from the one before, and each body: the
    plain text of a mail, else that of its HTML; attachments are left out. Raises MalformedInput naming the
    mail, UnsupportedInput for HTML without the extra `html`, EmptyInput where no mail holds text.
    """
    extract = Extract()
    subject = None
    for number, raw in enumerate(_mails(draft), 1):
        where = f"mail {number}"
        try:
            mail = BytesParser().parsebytes(raw)
            body = storable(_body(mail, where), where).strip("\n")
        except RecursionError:
            raise MalformedInput(f"{where}: its parts are nested too deeply") from None
        named = _header(mail, "subject", where)
        if named and named != subject:
            extract.heading(named, 1)
        subject = named
        if body.strip():
            name, address = parseaddr(_header(mail, "from", where))
            attributes = _attributes(mail, where, {"speaker": name or address, "position": number - 1})
            extract.add(
                body, "message", speaker=name or address or None, time=_time(mail), attributes=attributes
            )
    if not extract.text:
        raise EmptyInput("no mail holds text")
    draft = replace(draft, title=draft.title or extract.title or stem(draft.source_id))
    return extract.batch(draft, max_span_chars)


def _mails(draft: SourceDraft) -> Iterator[bytes]:
    if draft.media_type != MBOX:
        yield draft.text
        return
    starts = [match.span() for match in _FROM_LINE.finditer(draft.text)]
    if not starts or draft.text[: starts[0][0]].strip():
        raise MalformedInput("an mbox begins with a line `From …`; this file does not")
    for (_, start), end in zip(starts, [*(start for start, _ in starts[1:]), None], strict=True):
        yield _QUOTED_FROM.sub(rb"\1", draft.text[start:end])


def _body(mail: Message, where: str) -> str:
    """Return what a reader sees first: the plain text parts, else the HTML ones."""
    found: dict[str, list[str]] = {"text/plain": [], "text/html": []}
    for part in mail.walk():
        kind = part.get_content_type()
        if kind in found and part.get_content_disposition() != "attachment":
            found[kind].append(_text(part, where))
    plain = "\n\n".join(text for text in found["text/plain"] if text.strip())
    return plain or "\n\n".join(html_text(page) for page in found["text/html"] if page.strip())


def _text(part: Message, where: str) -> str:
    data = part.get_payload(decode=True)
    charset = part.get_content_charset("utf-8")
    try:
        text = data.decode(charset, "replace") if isinstance(data, bytes) else ""
    except (LookupError, ValueError):
        raise MalformedInput(f"{where}: no charset is called {charset[:60]!r}") from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _header(mail: Message, name: str, where: str) -> str:
    """Return a header as text on one line; what cannot be decoded stands as it is."""
    value = mail.get(name, "")
    try:
        shown = str(make_header(decode_header(value)))
    except (MessageError, LookupError, ValueError):
        shown = str(value)
    return storable(short(shown), f"{where}: {name}")


def _attributes(mail: Message, where: str, about: JsonObject) -> JsonObject:
    headers = {name.replace("-", "_"): _header(mail, name, where) for name in ("message-id", "to", "cc")}
    return {key: value for key, value in {**headers, **about}.items() if value != ""}


def _time(mail: Message) -> datetime | None:
    """Return when a mail was sent, None where it does not say so in a way that can be read."""
    try:
        return instant(parsedate_to_datetime(str(mail["date"])))
    except (TypeError, ValueError):
        return None
