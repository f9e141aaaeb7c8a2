"""What commands print: JSON, tables and problems; data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import typer
from rich.console import Console

console = Console(highlight=False, markup=False)
messages = Console(stderr=True, highlight=False, markup=False)


def emit_json(value: object) -> None:
    """Write one JSON document and a newline to stdout, in UTF-8 whatever the locale."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())


def emit_text(text: str) -> None:
    """Write a line to stdout as it is."""
    typer.echo(text)


def emit_problem(problem: Mapping[str, object], *, as_json: bool) -> None:
    """Write an RFC 9457 problem object to stderr, or only its detail as a sentence."""
    if as_json:
        plain = {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in problem.items()}
        typer.echo(json.dumps(plain, ensure_ascii=False, default=str).encode(), err=True)
    else:
        messages.print(f"{problem['detail']}", soft_wrap=True)


def bar(share: float, width: int = 24) -> str:
    """Draw a share from 0 to 1 as a bar of so many characters."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    return "█" * filled + "░" * (width - filled)
