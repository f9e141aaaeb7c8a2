"""How long ago: `30d`, `12h`, as an option."""

from __future__ import annotations

import re
from datetime import timedelta

import typer

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
LONGEST = timedelta(days=36_500)


def duration(text: str) -> timedelta:
    """Read a number and its unit. Raises BadParameter for anything else, and for more than a century."""
    match = re.fullmatch(r"(\d{1,10})([smhdw])", text)
    seconds = int(match[1]) * UNITS[match[2]] if match else 0
    if match is None or seconds > LONGEST.total_seconds():
        raise typer.BadParameter(f"{text!r} is no duration; write 30d, 12h, 90m, 45s or 2w")
    return timedelta(seconds=seconds)
