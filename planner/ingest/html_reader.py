"""The walk over a parsed page: which text is a heading, a paragraph, code, or a cell of what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import regex

from planner.ingest.extracted import PARAGRAPH_BREAK, Extract, short

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_COLUMNS = 1_000

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_UNSEEN = (
    "head script style template noscript iframe object embed svg math canvas audio video select datalist "
    "textarea -comment"
)
_APART = (
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre "
    "search section summary table tbody td tfoot th thead tr ul"
)
_DROPPED, _BREAKING = frozenset(_UNSEEN.split()), frozenset(_APART.split())
_SPACE = regex.compile(r"[ \t\n\f\r]++")
_AROUND_BREAK = regex.compile(r" *+\n *+")


@dataclass(slots=True)
class _Table:
    """A table while it is read; columns are counted from 0, spanned ones too."""

    columns: dict[int, str] | None = None
    names: dict[int, str] = field(default_factory=dict)
    covered: dict[int, int] = field(default_factory=dict)
    taken: frozenset[int] = frozenset()
    next_column: int = 0
    cell: range | None = None
    is_heading: bool = True
    break_before: str = PARAGRAPH_BREAK

    def open_row(self) -> None:
        self.taken = frozenset(self.covered)
        self.covered = {column: rows - 1 for column, rows in self.covered.items() if rows > 1}
        self.names = {0: self.names[0]} if 0 in self.taken and 0 in self.names else {}
        self.next_column = 0
        self.is_heading = self.columns is None

    def open_cell(self, node: LexborNode) -> None:
        while self.next_column in self.taken:
            self.next_column += 1
        self.cell = range(self.next_column, self.next_column + _span(node, "colspan"))
        self.next_column = self.cell.stop
        self.is_heading = self.is_heading and node.tag == "th"
        if (rows := _span(node, "rowspan")) > 1:
            self.covered |= dict.fromkeys(self.cell, rows - 1)

    def close_row(self) -> None:
        if self.is_heading and self.names:
            self.columns = self.names
        if self.break_before != PARAGRAPH_BREAK:
            self.break_before = "\n"

    def place(self, text: str) -> tuple[str | None, str]:
        """Return the label of a text in the open cell, and what parts it from the text before."""
        assert self.cell is not None
        label = None
        if not self.is_heading:
            row = self.names.get(0, "") if self.cell.start else ""
            column = (self.columns or {}).get(self.cell.start, "")
            label = " / ".join(filter(None, (row, column))) or None
        for column_number in self.cell:
            self.names[column_number] = short(f"{self.names.get(column_number, '')} {text}")
        before, self.break_before = self.break_before, "\t"
        return label, before


def read_page(root: LexborNode) -> Extract:
    """Return the texts below a node. White space is as a browser shows it; a `br` is a newline."""
    reader = _Reader()
    for node, entering in _events(root):
        reader.see(node, entering)
    reader.flush()
    return reader.extract


def _events(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Yield nodes when they are entered and left, in document order, without those that no reader sees."""
    node, depth = root, 0
    while True:
        child = None
        if node.tag not in _DROPPED:
            yield node, True
            child = node.first_child
        if child is not None:
            node, depth = child, depth + 1
            continue
        if node.tag not in _DROPPED:
            yield node, False
        while depth and node.next is None:
            parent = node.parent
            assert parent is not None
            node, depth = parent, depth - 1
            yield node, False
        if not depth:
            return
        following = node.next
        assert following is not None
        node = following


def _span(node: LexborNode, name: str) -> int:
    value = node.attributes.get(name) or ""
    return (
        min(max(int(value), 1), MAX_COLUMNS) if value.isascii() and value.isdigit() and len(value) < 9 else 1
    )


class _Reader:
    def __init__(self) -> None:
        self.extract = Extract()
        self._texts: list[str] = []
        self._tables: list[_Table] = []
        self._level = 0
        self._pre = 0

    def see(self, node: LexborNode, entering: bool) -> None:
        tag = node.tag or ""
        if tag == "-text":
            if entering:
                self._texts.append(
                    node.text_content or "" if self._pre else _SPACE.sub(" ", node.text_content or "")
                )
        elif tag == "br":
            if entering:
                self._texts.append("\n")
        elif tag in _BREAKING:
            self.flush()
            self._nest(node, tag, entering)

    def flush(self) -> None:
        """Make a block of the texts since the last one."""
        text = "".join(self._texts)
        self._texts.clear()
        if self._pre:
            text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        else:
            text = _AROUND_BREAK.sub("\n", regex.sub("  ++", " ", text)).strip()
        if not text.strip():
            return
        table = self._tables[-1] if self._tables else None
        if self._pre:
            self.extract.add(text, "code")
        elif self._level:
            self.extract.heading(text, self._level)
        elif table is not None and table.cell is not None:
            label, before = table.place(text)
            self.extract.add(text, "cell", label=label, break_before=before)
        else:
            self.extract.add(text, "paragraph")

    def _nest(self, node: LexborNode, tag: str, entering: bool) -> None:
        """Keep count of what the following text is inside of."""
        table = self._tables[-1] if self._tables else None
        if tag in _HEADINGS:
            self._level = _HEADINGS[tag] if entering else 0
        elif tag == "pre":
            self._pre += 1 if entering else -1
        elif tag == "table":
            if entering:
                self._tables.append(_Table())
            else:
                self._tables.pop()
        elif table is not None and tag == "tr":
            table.open_row() if entering else table.close_row()
        elif table is not None and tag in ("td", "th"):
            if entering:
                table.open_cell(node)
            else:
                table.cell = None
