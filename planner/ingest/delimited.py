"""CSV and TSV (RFC 4180): a span for each cell, at its exact bytes, labelled by row and column."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace

import regex

from planner.errors import MalformedInput
from planner.ingest.blocks import Block, assemble
from planner.ingest.extracted import short
from planner.ingest.ids import stem
from planner.ingest.media import TSV
from planner.types import Batch, SourceDraft

PARSER_VERSION = "delimited/1"

DELIMITERS = ",;\t|"
SNIFFED_CHARS = 4 * 1024

Row = list[tuple[int, int]]


def parse_delimited(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Return the batch of a table whose first row names its columns and first column its rows.

    A cell's span is what stands between its delimiters, or inside its quotes, byte for byte: a doubled quote
    stays doubled. TSV is delimited by tabs; what delimits CSV is guessed from its first lines. Raises
    MalformedInput naming the line of a quote that is never closed.
    """
    text = draft.text.decode()
    delimiter = "\t" if draft.media_type == TSV else _sniffed(text)
    draft = replace(draft, title=draft.title or stem(draft.source_id))
    return assemble(draft, list(_blocks(text, delimiter)), max_span_chars)


def rows(text: str, delimiter: str) -> Iterator[Row]:
    """Yield the rows of a table as the code-point ranges of their cells; empty lines are no rows."""
    mark = regex.escape(delimiter)
    cell = regex.compile(rf'(?:"(?P<quoted>(?:[^"]|"")*+)(?P<close>"|\Z)[^\n{mark}]*+|[^\n{mark}]*+)')
    row: Row = []
    at = 0
    while at < len(text):
        match = cell.match(text, at)
        assert match is not None  # it matches nothing too
        if match["close"] == "":
            line = text.count("\n", 0, at) + 1
            raise MalformedInput(f"line {line}: a quote is opened and never closed", line=line)
        row.append(match.span("quoted") if match["close"] else match.span())
        at = match.end()
        if text.startswith(delimiter, at):
            at += 1
            if at == len(text):
                row.append((at, at))
        else:
            at += 1
            if len(row) > 1 or match.end() > match.start():
                yield row
            row = []
    if row:
        yield row


def _blocks(text: str, delimiter: str) -> Iterator[Block]:
    columns: list[str] | None = None
    offset = counted = 0
    for row in rows(text, delimiter):
        named = row if columns is None else row[:1]
        names = [short(text[start:end].replace('""', '"')) for start, end in named]
        for index, (start, end) in enumerate(row):
            offset += len(text[counted:start].encode())
            length, counted = len(text[start:end].encode()), start
            label = None
            if columns is not None:
                column = columns[index] if index < len(columns) else ""
                label = " / ".join(filter(None, (names[0] if index else "", column)))
            yield Block(offset, offset + length, "cell", label=label or None)
        columns = names if columns is None else columns


def _sniffed(text: str) -> str:
    sample = text.lstrip("\n")[:SNIFFED_CHARS]
    try:
        return csv.Sniffer().sniff(sample, DELIMITERS).delimiter
    except csv.Error:
        return max(DELIMITERS, key=sample.split("\n", 1)[0].count)
