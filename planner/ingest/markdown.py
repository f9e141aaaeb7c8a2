"""Markdown: paragraphs, headings with their path, code and table cells, at their exact bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

from planner.ingest.blocks import Block, assemble
from planner.ingest.front_matter import front_matter
from planner.ingest.ids import stem
from planner.ingest.lines import Lines
from planner.ingest.links import Env, link_edges, wiki_links
from planner.ingest.tables import MARKERS, cell_ranges
from planner.types import Batch, SourceDraft

PARSER_VERSION = "markdown/1"

MAX_LABEL_CHARS = 200
"""A heading goes into the path of every span below it, so what of it is repeated is bounded."""

_MD = (
    MarkdownIt("commonmark", {"maxNesting": 100, "inline_definitions": True}).enable("table").use(wiki_links)
)

_WORD = regex.compile(r"\w")
_MARKUP = regex.compile(r"[\\`*_\[<&\n]")


def parse_markdown(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Return the batch of a Markdown source: its structure, and `links_to` edges.

    Front matter becomes attributes, those of `draft` first; the title is the draft's, else the front
    matter's, else the first top heading, else the name. Raises MalformedInput for bad front matter.
    """
    text = draft.text.decode()
    front = front_matter(text)
    lines = Lines(text)
    env: Env = {}
    outline = _Outline(lines, front.lines, env)
    # Blank lines stand in for the front matter, so that line numbers stay those of the file.
    body = text.split("\n", front.lines)[-1] if front.lines else text
    outline.walk(_BLOCKS.parse("\n" * front.lines + body, env))
    named = front.attributes.get("title")
    draft = replace(
        draft,
        title=draft.title or (str(named) if named else None) or outline.title or stem(draft.source_id),
        attributes={**front.attributes, **draft.attributes},
    )
    batch = assemble(draft, outline.blocks, max_span_chars)
    texts = [
        (node, draft.text[start:end].decode())
        for node in batch.nodes
        if node.kind != "code"
        for _, start, end in node.spans
    ]
    links = dict.fromkeys(link_edges(draft.source_id, texts, _MD, env))
    return replace(batch, edges=batch.edges + tuple(links))


def _block_parser() -> MarkdownIt:
    """Return a parser that stops at blocks: inline markup is read a span at a time, where needed."""
    md = MarkdownIt("commonmark", dict(_MD.options)).enable("table")
    md.core.ruler.enableOnly(["block"])
    return md


_BLOCKS = _block_parser()


class _Outline:
    """Collects blocks from block tokens, which come in the order of the text."""

    def __init__(self, lines: Lines, first: int, env: Env) -> None:
        self.blocks: list[Block] = []
        self.title: str | None = None
        self._lines = lines
        self._next = first
        self._env = env
        self._path: list[tuple[int, str, int]] = []

    def walk(self, tokens: Sequence[Token]) -> None:
        for index, token in enumerate(tokens):
            if token.map is None:
                continue
            first, after = token.map
            match token.type:
                case "heading_open":
                    self._reach(first, after)
                    self._heading(token, tokens[index + 1].content, first, after)
                case "paragraph_open":
                    self._reach(first, after)
                    self._paragraph(first, after, tokens[index + 1].content)
                case "html_block":
                    self._reach(first, after)
                    self._add(*self._lines.range(first, after), "paragraph")
                case "code_block":
                    self._reach(first, after)
                    self._add(*self._lines.range(first, after), "code")
                case "fence":
                    self._reach(first, after)
                    self._fence(token, first)
                case "table_open":
                    self._reach(first, after)
                    self._table(first, after)
                case "hr" | "definition":
                    self._reach(first, after)
        self._reach(len(self._lines), len(self._lines))

    def _reach(self, first: int, after: int) -> None:
        """Take as paragraphs the lines since the last block that no token covers: what is nested too deep."""
        for begun, ended in self._lines.groups(self._next, first):
            column = _content_column(self._lines[begun])
            if any(
                _WORD.search(self._lines[n], _content_column(self._lines[n])) for n in range(begun, ended)
            ):
                self._add(*self._lines.range(begun, ended, column), "paragraph")
        self._next = max(self._next, after)

    def _add(self, start: int, end: int, kind: str, label: str | None = None, language: str = "") -> None:
        self.blocks.append(
            Block(
                start,
                end,
                kind,
                heading_path=tuple(text for _, text, _ in self._path),
                parent=self._path[-1][2] if self._path else None,
                label=label,
                attributes={"language": language} if language else {},
            )
        )

    def _heading(self, token: Token, content: str, first: int, after: int) -> None:
        if not content:
            return
        level = int(token.tag[1])
        if token.markup.startswith("#"):
            opened = self._lines[first].index("#") + len(token.markup)
            column = self._lines[first].index(content, opened)
            start = self._lines.offset(first, column)
            end = start + len(content.encode())
        else:
            start, end = self._lines.range(first, after - 1, self._content_start(first, content))
        text = self._plain(content)
        outer = [heading for heading in self._path if heading[0] < level]
        # A heading inside a list or a quotation has a path, but opens no section of the document.
        around = list(self._path) if token.level else outer
        self.blocks.append(
            Block(
                start,
                end,
                "heading",
                heading_path=(*(text for _, text, _ in around), text),
                parent=around[-1][2] if around else None,
            )
        )
        if not token.level:
            self._path = [*outer, (level, text, start)]
        if level == 1 and self.title is None:
            self.title = text

    def _paragraph(self, first: int, after: int, content: str) -> None:
        self._add(*self._lines.range(first, after, self._content_start(first, content)), "paragraph")

    def _content_start(self, line: int, content: str) -> int:
        """Return the column at which a block's text starts, behind the markers of lists and quotations."""
        raw, text = self._lines[line].rstrip(), content.split("\n", 1)[0].rstrip()
        return len(raw) - len(text) if raw.endswith(text) else _content_column(raw)

    def _fence(self, token: Token, first: int) -> None:
        inside = token.content.count("\n")
        if inside:
            language = token.info.strip().split(" ")[0][:MAX_LABEL_CHARS]
            self._add(*self._lines.range(first + 1, first + 1 + inside), "code", language=language)

    def _table(self, first: int, after: int) -> None:
        header = cell_ranges(self._lines[first])
        columns = [self._plain(self._lines[first][start:end]) for start, end in header]
        for number in (first, *range(first + 2, after)):
            line = self._lines[number]
            cells = header if number == first else cell_ranges(line)[: len(columns)]
            row = self._plain(line[slice(*cells[0])]) if cells else ""
            offset, column = self._lines.offset(number), 0
            for index, (start, end) in enumerate(cells):
                offset += len(line[column:start].encode())
                length, column = len(line[start:end].encode()), start
                names = () if number == first else (row if index else "", columns[index])
                self._add(offset, offset + length, "cell", label=" / ".join(filter(None, names)) or None)

    def _plain(self, content: str) -> str:
        """Return inline markup as the text that a reader sees, at most MAX_LABEL_CHARS of it."""
        content = content.strip()[: 4 * MAX_LABEL_CHARS]
        if not _MARKUP.search(content):
            return content[:MAX_LABEL_CHARS]
        inline = _MD.parseInline(content, self._env)[0].children or []
        shown = "".join(
            " " if t.type in ("softbreak", "hardbreak") else t.content
            for t in inline
            if t.type != "html_inline"
        )
        return (shown.strip() or content)[:MAX_LABEL_CHARS]


def _content_column(line: str) -> int:
    match = MARKERS.match(line)
    return match.end() if match else 0
