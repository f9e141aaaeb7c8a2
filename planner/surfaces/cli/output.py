"""What commands print: JSON, tables and problems; data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.text import Text

from planner.surfaces.visible import excerpt, visible

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "bar",
    "console",
    "emit_indented",
    "emit_json",
    "emit_problem",
    "emit_table",
    "emit_text",
    "encoded",
    "excerpt",
    "messages",
    "visible",
]

console = Console(highlight=False, markup=False, emoji=False)
messages = Console(stderr=True, highlight=False, markup=False, emoji=False)

UNBOUNDED = 100_000
"""Columns, where nothing bounds a line."""


def emit_json(value: object) -> None:
    """Write one JSON document and a newline to stdout, in UTF-8 whatever the locale."""
    typer.echo(encoded(json.dumps(value, ensure_ascii=False, allow_nan=False)))


def emit_table(table: Table) -> None:
    """Print a table; where no terminal bounds it, a row is one line, for programs to read."""
    if console.is_terminal or "COLUMNS" in os.environ:
        console.print(table)
    else:
        Console(file=console.file, width=UNBOUNDED, highlight=False, markup=False, emoji=False).print(table)


def emit_indented(text: str, indent: int) -> None:
    """Print a text in lines of the console's width, set in by so many columns."""
    for line in Text(text).wrap(console, max(1, console.width - indent)):
        console.print(" " * indent + line.plain.rstrip(), soft_wrap=True)


def encoded(document: str) -> bytes:
    """Return JSON in UTF-8; a lone surrogate, of a file name say, becomes JSON's escape for it."""
    return document.encode("utf-8", "backslashreplace")


def emit_text(text: str) -> None:
    """Write a line to stdout as it is."""
    typer.echo(text)


def emit_problem(problem: Mapping[str, object], *, as_json: bool, err: bool = True) -> None:
    """Write an RFC 9457 problem object, or only its detail as a sentence; to stderr, or to stdout."""
    if as_json:
        plain = {
            k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in problem.items()
        }
        typer.echo(encoded(json.dumps(plain, ensure_ascii=False, default=str)), err=err)
    else:
        (messages if err else console).print(visible(f"{problem['detail']}", keep="\n"), soft_wrap=True)


def bar(share: float, width: int = 24, mark: float | None = None) -> str:
    """Draw a share from 0 to 1 as a bar of so many characters, with a line after the share `mark`."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    cells = "█" * filled + "░" * (width - filled)
    if mark is None:
        return cells
    at = round(min(max(mark, 0.0), 1.0) * width)
    return f"{cells[:at]}│{cells[at:]}"
