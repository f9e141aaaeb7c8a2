"""Source code: a span for each definition, then for what blank lines set apart.

One rule reads every language: a statement is a line and what follows it indented deeper, in brackets or
quoted. It needs no compiler, so that a file has the same spans under every version of Python (`ast` reads the
syntax of its own version only), in linear time and memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import regex

from planner.ingest.blocks import Block, assemble
from planner.ingest.languages import FAMILIES, PREFIX, Family, quoted_lines
from planner.ingest.lines import Lines
from planner.types import Batch, SourceDraft

PARSER_VERSION = "code/1"

MAX_LEVELS = 20
"""Classes nested deeper than this stay whole, and are cut like any long code."""

MAX_HEAD_CHARS = 400
MAX_LABEL_CHARS = 200
TAB = 8

_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|abstract|final|sealed|async|unsafe|"
    r"pub(?:\([^)]*+\))?|extern(?:\s*+\"[^\"]*+\")?|const|constexpr|inline|virtual|override|open|data|partial|"
    r"readonly|local|suspend|typedef|case|create|or|replace|temp|temporary|unique|materialized)\s++)*+"
)
_DEFINITION = regex.compile(
    _MODIFIERS
    + r"(?:(?P<holder>class|struct|interface|trait|impl|module|mod|namespace|object|protocol|extension|enum|"
    r"record|union|defmodule)|def|defp|defmacro|function\*?|func(?:\s*+\([^)]*+\))?|fn|fun|sub|type|table|view|"
    r"index|trigger|procedure|policy|message|service)(?=[\s<])"
    r"(?:\s*+<[^>]*+>)?\s++(?:(?:concurrently|if\s++not\s++exists|[\w:<>]++\s++for)\s++)*+(?P<name>[^\W\d][\w$.:]*+)",
    regex.IGNORECASE,
)
_ARROW = regex.compile(
    r"(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+(?P<name>[\w$]+)[^=]*+=\s*(?:async\s*)?"
    r"(?:function\b|\([^()]*+\)[^=]*+=>|[\w$]+\s*=>|\($)"
)
_CALL_LIKE = regex.compile(
    r"(?!(?:if|for|foreach|while|switch|catch|return|else|do|try|with|using|lock|match|new|throw|await|"
    r"yield|case|assert|elif|until|select)\b)[^=;(){}\"'#]*?(?P<name>[\w$~]++)\s*+\([^;]*+$"
)
_LEADS_IN = regex.compile(r"@|#|//|/\*|\*|--|\[|template\b")
_GOES_ON = regex.compile(
    r"[)\]}{]|\*/"
    r"|(?:else|elif|elsif|except|finally|catch|rescue|ensure|end|then|do|done|fi|esac)\b(?!\s*+[=.,\[])"
)
_HOLDS_A_WORD = regex.compile(r"(?!\s*+(?:end|fi|done|esac)\b\W*+$)\W*+\w")


@dataclass(frozen=True, slots=True)
class _Statement:
    """The lines `first … after` of a statement, without blank lines at its end."""

    first: int
    after: int


def parse_code(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Return the batch of a source code file, in the language that its media type names.

    A definition is a span with the comments and decorators right above it; its path and label are its
    qualified name. A class, or what else holds definitions, is a span up to the first of them, and they are
    part of it. Lines without a word, such as closing brackets, may belong to no span.
    """
    outline = _Outline(draft.text.decode(), draft.media_type)
    outline.walk(0, len(outline.lines), (), None)
    title = draft.title or draft.source_id.rsplit("/", 1)[-1]
    return assemble(replace(draft, title=title), outline.blocks, max_span_chars)


class _Outline:
    """Collects the blocks of a text, top down and in order."""

    def __init__(self, text: str, media_type: str) -> None:
        self.blocks: list[Block] = []
        self.lines = Lines(text)
        self._family: Family = FAMILIES[media_type]
        self._attributes = {"language": media_type.removeprefix(PREFIX)}
        self._quoted = bytearray(len(self.lines))
        for lines in quoted_lines(text, self._family):
            self._quoted[lines.start : lines.stop] = b"\1" * len(lines)
        self._indents = self._indentation()

    def walk(self, first: int, after: int, path: tuple[str, ...], parent: int | None) -> None:
        """Add the blocks of the lines `first … after`, which are inside of `path`."""
        run: list[_Statement] = []
        for statement in self._statements(first, after):
            if run and statement.first > run[-1].after:
                self._add(run[0].first, run[-1].after, path, parent)
                run = []
            match = self._definition(statement)
            if match is None:
                run.append(statement)
                continue
            lead = len(run) - self._lead(run)
            if lead:
                self._add(run[0].first, run[lead - 1].after, path, parent)
            self._define(run[lead].first if run[lead:] else statement.first, statement, match, path, parent)
            run = []
        if run:
            self._add(run[0].first, run[-1].after, path, parent)

    def _indentation(self) -> list[int]:
        """Return the column at which each line starts.

        A comment is as deep as the code that follows it, and deeper than a bracket that closes.
        """
        indents = [0] * len(self.lines)
        following = 0
        for number in range(len(self.lines) - 1, -1, -1):
            line = self.lines[number]
            if not line or line.isspace() or self._quoted[number]:
                continue
            indents[number] = _indent(line)
            if self._family.aside.match(line):
                indents[number] = max(indents[number], following)
            else:
                following = indents[number] + bool(_GOES_ON.match(line.lstrip()))
        return indents

    def _statements(self, first: int, after: int) -> Iterator[_Statement]:
        begun: int | None = None
        base: int | None = None
        last = first
        for number in range(first, after):
            line = self.lines[number]
            if not self._quoted[number] and (not line or line.isspace()):
                continue
            indent, goes_on = self._indents[number], bool(_GOES_ON.match(line.lstrip()))
            if base is not None and (self._quoted[number] or indent > base or (indent == base and goes_on)):
                last = number
                continue
            if begun is not None:
                yield _Statement(begun, last + 1)
            begun = last = number
            if not goes_on:
                base = indent
        if begun is not None:
            yield _Statement(begun, last + 1)

    def _definition(self, statement: _Statement) -> regex.Match[str] | None:
        head = self.lines[statement.first][:MAX_HEAD_CHARS].strip()
        match = _DEFINITION.match(head) or _ARROW.match(head)
        if match is None and self._family.is_call_like and statement.after > statement.first + 1:
            match = _CALL_LIKE.match(head)
        return match

    def _leads_in(self, statement: _Statement) -> bool:
        return bool(_LEADS_IN.match(self.lines[statement.first].lstrip()))

    def _lead(self, run: Sequence[_Statement]) -> int:
        """Return how many statements right before a definition belong to it: comments and decorators."""
        return sum(1 for _ in takewhile(self._leads_in, reversed(run)))

    def _define(
        self,
        start: int,
        statement: _Statement,
        match: regex.Match[str],
        outer: tuple[str, ...],
        parent: int | None,
    ) -> None:
        """Add a definition whose comments start on line `start`; what holds others in parts."""
        path = (*outer, match["name"].rstrip(":."))
        after = statement.first + 1
        is_holder = bool(match.groupdict().get("holder")) and len(path) <= MAX_LEVELS
        held = list(self._statements(after, statement.after)) if is_holder else []
        if not any(self._definition(inner) for inner in held):
            self._add(start, statement.after, path, parent)
            return
        for inner in held:
            if inner.first > after or self._leads_in(inner) or self._definition(inner):
                break
            after = inner.after
        self._add(start, after, path, parent)
        self.walk(after, statement.after, path, self.lines.offset(start))

    def _add(self, first: int, after: int, path: tuple[str, ...], parent: int | None) -> None:
        if not any(_HOLDS_A_WORD.match(self.lines[number]) for number in range(first, after)):
            return
        start, end = self.lines.range(first, after)
        label = ".".join(path)[:MAX_LABEL_CHARS] or None
        self.blocks.append(Block(start, end, "code", path, parent, label=label, attributes=self._attributes))


def _indent(line: str) -> int:
    blank = line[: len(line) - len(line.lstrip())]
    return len(blank.expandtabs(TAB)) if "\t" in blank else len(blank)
