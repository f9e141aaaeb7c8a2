"""E-mail: who wrote when under which subject; parts, charsets, mboxes; what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from planner.errors import MalformedInput
from planner.ingest import parse
from planner.types import Batch
from tests.ledger_checks import check_graph, check_ledger, texts


def read(raw: bytes, source_id: str = "a.eml") -> Batch:
    batch = parse(raw, source_id=source_id)
    check_ledger(batch, 900)
    check_graph(batch)
    return batch


def mail(body: str = "High water at three.", **headers: str) -> EmailMessage:
    made = EmailMessage()
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    made.set_content(body)
    return made


def test_a_mail_is_a_message_below_its_subject_with_speaker_and_time() -> None:
    made = mail(
        "潮は三時に満ちる。\n\n> quoted\n",
        From="Åki <aki@example.org>",
        To="b@example.org",
        Subject="Tide 潮",
        Date="Wed, 01 May 2024 09:30:00 +0900",
        Message_ID="<1@example.org>",
    )
    batch = read(bytes(made))
    assert texts(batch) == [("heading", "Tide 潮"), ("message", "潮は三時に満ちる。\n\n> quoted")]
    (source,) = batch.sources
    assert (source.title, source.spans[1].speaker, source.spans[1].heading_path) == (
        "Tide 潮",
        "Åki",
        ("Tide 潮",),
    )
    message = batch.nodes[2]
    assert message.valid_from == datetime(2024, 5, 1, 0, 30, tzinfo=UTC)
    assert message.attributes == {
        "message_id": "<1@example.org>",
        "to": "b@example.org",
        "speaker": "Åki",
        "position": 0,
    }


def test_plain_text_is_preferred_and_attachments_are_left_out() -> None:
    made = mail("plain", Subject="S")
    made.add_alternative("<p>rich</p>", subtype="html")
    made.add_attachment("attached", filename="a.txt")
    assert texts(read(bytes(made)))[1:] == [("message", "plain")]


def test_a_mail_of_html_alone_is_read_as_a_page() -> None:
    made = EmailMessage()
    made.set_content("<style>x</style><p>One</p><p>two</p>", subtype="html")
    assert texts(read(bytes(made))) == [("message", "One\n\ntwo")]


@pytest.mark.parametrize("charset", ["iso-2022-jp", "utf-8", "shift_jis"])
def test_charsets_and_long_encoded_headers_are_decoded(charset: str) -> None:
    made = EmailMessage()
    made["Subject"] = "潮位表" * 30
    made.set_content("潮は三時", charset=charset)
    assert texts(read(bytes(made))) == [("heading", "潮位表" * 30), ("message", "潮は三時")]


def test_an_mbox_holds_many_mails_and_repeats_no_subject() -> None:
    mails = [
        mail("one\n>From here", From="a@example.org", Subject="S"),
        mail("two", Subject="S"),
        mail("three"),
    ]
    raw = b"\n".join(b"From a Wed May  1 2024\n" + bytes(made) for made in mails)
    assert texts(read(raw, "a.mbox")) == [
        ("heading", "S"),
        ("message", "one\nFrom here"),
        ("message", "two"),
        ("message", "three"),
    ]
    crlf = raw.replace(b"\n", b"\r\n")
    assert texts(read(crlf, "a.mbox")) == texts(read(raw, "a.mbox"))


@pytest.mark.parametrize(
    "date", ["yesterday", "", "Wed, 99 May 2024 99:99:99 +0900", "31 Dec 9999 23:59 -2300"]
)
def test_a_date_that_cannot_be_read_is_none(date: str) -> None:
    raw = f"Date: {date}\nSubject: s\n\nbody".encode()
    assert read(raw).nodes[2].valid_from is None


@pytest.mark.parametrize(
    "headers",
    [
        b"Subject: =?utf-8?q?broken",
        b"Subject: =?no-such-charset?q?a=20b?=",
        b"Subject: \xff\xfe raw bytes",
        b"Subject: " + b"=?utf-8?b?" * 2_000,
        b"From: " + b"<" * 5_000,
        b"From: " + b"(" * 5_000,
        b"Content-Type: " + b";=" * 5_000,
        b"Content-Transfer-Encoding: base64",
        b"no header at all",
    ],
)
def test_headers_that_break_the_rules_are_read_as_they_are(headers: bytes) -> None:
    assert texts(read(headers + b"\nX: y\n\nbody text, long enough"))[-1][0] == "message"


def test_an_unknown_charset_is_refused_and_the_mail_named() -> None:
    bad = b"From a Wed\nContent-Type: text/plain; charset=no-such\n\nx\n"
    with pytest.raises(MalformedInput, match=r"mail 2: .*no-such"):
        parse(b"From a Wed\n\nfine\n\n" + bad, source_id="a.mbox")


def test_an_mbox_begins_with_its_first_mail() -> None:
    with pytest.raises(MalformedInput, match="From"):
        parse(b"Subject: x\n\nbody\n\nFrom a Wed\n\nx", source_id="a.mbox")


def test_parts_nested_without_end_are_refused_or_read() -> None:
    nested = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(5_000)
    )
    with pytest.raises(MalformedInput, match=r"mail 1: .*nested"):
        parse(nested + b"\nbody", source_id="a.eml")
