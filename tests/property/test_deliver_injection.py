"""Escaping is reversible, hides every delimiter, and leaves ordinary text alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.deliver.deliver import deliver
from planner.deliver.envelope import MAX_LABEL
from planner.deliver.escape import escape, quote, unescape
from planner.tokens import ScriptCounter
from tests.bundle_parser import looks_like_delimiter, unquote
from tests.delivery_checks import check
from tests.delivery_strategies import PLAN_HASH, forgeries, hostile, labels
from tests.memory_shelf import MemoryShelf, conversation

ROOT = Path(__file__).resolve().parents[2]
text = hostile | st.text()


@given(text)
def test_what_is_escaped_can_be_unescaped(drawn: str) -> None:
    assert unescape(escape(drawn)) == drawn
    assert unescape(unescape(escape(escape(drawn)))) == drawn


@given(st.text(alphabet="<\\&;ltamp#x3c6 0dea/\u200b%", max_size=60))
def test_what_is_escaped_can_be_unescaped_where_everything_nests(drawn: str) -> None:
    assert unescape(escape(drawn)) == drawn
    assert not looks_like_delimiter(escape(drawn))


@given(st.lists(forgeries() | hostile, max_size=4).map("".join))
def test_nothing_that_is_escaped_looks_like_a_delimiter(drawn: str) -> None:
    assert not looks_like_delimiter(escape(drawn))


@given(text)
def test_labels_keep_to_one_line_and_come_back(drawn: str) -> None:
    quoted = quote(drawn)
    assert len(quoted.splitlines()) == 1
    assert not looks_like_delimiter(quoted)
    assert unquote(quoted) == drawn


@given(st.lists(st.tuples(hostile, labels), min_size=1, max_size=5), labels, labels)
def test_a_bundle_says_what_was_put_in(
    said: list[tuple[str, str | None]], title: str | None, uri: str | None
) -> None:
    shelf = MemoryShelf()
    document, texts = conversation("c", [(body, name, None) for body, name in said], title=title, uri=uri)
    shelf.put(document, texts)
    hits = [shelf.hit(i + 1, document, i) for i in range(len(said))]
    delivery = deliver(hits, shelf, budget=100_000, counter=ScriptCounter(), plan_hash=PLAN_HASH)
    envelopes = check(delivery, shelf, hits, ScriptCounter())
    assert [(unescape(e.body), e.name) for e in envelopes] == [(body, _short(name)) for body, name in said]
    facts = envelopes[0].facts
    assert facts.get("title") == (None if title == "c" else _short(title))
    assert facts.get("uri") == _short(uri)


def _short(label: str | None) -> str | None:
    return label if label is None or len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"


@pytest.mark.parametrize(
    "ordinary",
    [
        "if (a < b && c<12) { return 0x1234abcd << 3; }",
        "<div class='a'><p>x &lt; y &amp; z</p></div><!-- 12345678 -->",
        "Vec<u8> and Map<String, List<Integer>>",
        "a <b> c </b> <https://example.com> <someone@example.com>",
        "« Bonjour », dit-elle. 《三体》 〈序〉",
        "C:\\path\\to %3A %20 C:\\\\x",
        "`<1234567` and #deadbeef and deadbeefdeadbeef",
    ],
)
def test_ordinary_text_stays_as_it_is(ordinary: str) -> None:
    assert escape(ordinary) == ordinary


def test_the_files_of_this_project_stay_as_they_are() -> None:
    files = [*(ROOT / "planner").rglob("*.py"), *(ROOT / "sql").rglob("*.sql"), ROOT / "CHANGELOG.md"]
    assert len(files) > 50
    for path in files:
        content = path.read_text(encoding="utf-8")
        if path.name != "envelope.py":  # which shows what a bundle looks like
            assert escape(content) == content, path


@pytest.mark.parametrize(
    "pathological",
    [
        "<",
        "< ",
        "<\u200b",
        "&lt;",
        "&amp;",
        "&#0",
        "&#x0",
        "\\",
        "<\\",
        "%25",
        "<deadbee",
        "<deadbeef",
        "&#100;",
    ],
)
def test_escaping_takes_linear_time(pathological: str) -> None:
    """Were it quadratic, a text of this length would take an hour; the tests' time limit is minutes."""
    drawn = pathological * (600_000 // len(pathological))
    assert unescape(escape(drawn)) == drawn
