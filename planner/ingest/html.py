"""HTML: what a reader sees of it, in document order, as headings, paragraphs, code and cells."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import regex

from planner.errors import EmptyInput, MalformedInput, UndecodableInput, UnsupportedInput
from planner.ingest.extracted import Extract, short
from planner.ingest.html_reader import read_page
from planner.ingest.ids import stem
from planner.types import Batch, SourceDraft

PARSER_VERSION = "html/1"

MAX_NESTING = 2_000
"""The parser's time grows with the square of the depth: 0.01 s here, 7 s at 40,000."""

_DECLARED = regex.compile(
    rb"<meta[^>]*?charset\s*+=\s*+[\"']?(iso-8859-\d{1,2}|latin-?1|us-ascii|windows-125\d|koi8-[ru]|shift_jis|"
    rb"euc-jp|euc-kr|iso-2022-jp|gb2312|gbk|gb18030|big5(?:-hkscs)?)[\"'\s/>;]",
    regex.IGNORECASE,
)
_AS_BROWSERS_DO = {"iso-8859-1": "cp1252", "latin1": "cp1252", "latin-1": "cp1252", "us-ascii": "cp1252"}
_TAG = regex.compile(r"<(/?)([a-z][^\s/>]*+)", regex.IGNORECASE)
_ENDLESS = "area base br col embed hr img input link meta source track wbr"
_ENDING_THEMSELVES = "p li dt dd tr td th thead tbody tfoot colgroup option optgroup rt rp body html head"
_NOT_NESTING = frozenset([*_ENDLESS.split(), *_ENDING_THEMSELVES.split()])


def as_utf8(raw: bytes) -> bytes:
    """Return HTML in UTF-8, where its first 1,024 bytes declare another encoding.

    Raises UndecodableInput, naming the offset, where it is not what it says.
    """
    match = _DECLARED.search(raw[:1024])
    if match is None:
        return raw
    name = match[1].decode().lower()
    try:
        return raw.decode(_AS_BROWSERS_DO.get(name, name)).encode()
    except UnicodeDecodeError as error:
        raise UndecodableInput(
            f"the page declares {name}, and is not at byte offset {error.start}; save it as UTF-8",
            offset=error.start,
        ) from None


def parse_html(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Return the batch of a page; its canonical text is the text extracted from it.

    Scripts, styles and the like are dropped. The title is the draft's, else the page's, else its first top
    heading, else the name. Raises UnsupportedInput without the extra `html`, MalformedInput where elements
    are nested too deeply.
    """
    extract, title = _extract(draft.text.decode())
    draft = replace(draft, title=draft.title or title or extract.title or stem(draft.source_id))
    return extract.batch(draft, max_span_chars)


def html_text(page: str) -> str:
    """Return the text of a page, such as the body of a mail. Raises as `parse_html` does."""
    return _extract(page)[0].text


def _extract(page: str) -> tuple[Extract, str | None]:
    """Return what a page holds, and its title."""
    try:
        from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415  # an extra
    except ImportError:
        raise UnsupportedInput(
            "reading HTML needs the extra `html`: pip install 'evidence-planner[html]'", extra="html"
        ) from None
    _refuse_deep(page)
    tree = LexborHTMLParser(page)
    if tree.root is None:
        raise EmptyInput("the page holds no element")
    named = tree.css_first("head > title")
    return read_page(tree.root), (short(named.text()) or None) if named is not None else None


def _refuse_deep(page: str) -> None:
    depth = 0
    open_tags: Counter[str] = Counter()
    for match in _TAG.finditer(page):
        name = match[2].lower()
        if name in _NOT_NESTING:
            continue
        if not match[1]:
            open_tags[name] += 1
            depth += 1
        elif open_tags[name]:
            open_tags[name] -= 1
            depth -= 1
        if depth > MAX_NESTING:
            raise MalformedInput(
                f"elements are nested deeper than {MAX_NESTING}, at character {match.start()}"
            )
