"""What may be said about a source or node beside its text: JSON that PostgreSQL can hold, and times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from planner.errors import MalformedInput
from planner.types import JsonObject

MAX_DEPTH = 32
MAX_VALUES = 10_000
"""YAML aliases make exponentially large values from a few lines; real attributes are a few dozen."""


def storable(text: str, what: str) -> str:
    """Return `text`. Raises MalformedInput where it holds a NUL or a lone surrogate, naming `what`."""
    if "\0" in text:
        raise MalformedInput(f"{what} holds a NUL character; remove it", field=what)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedInput(f"{what} holds a lone surrogate, which is no text", field=what) from None
    return text


def json_attributes(attributes: Mapping[Any, Any], what: str = "attributes") -> JsonObject:
    """Return attributes as JSON data: dates as ISO 8601 strings, keys as strings.

    Raises MalformedInput, naming the path of the value, for anything that JSON or PostgreSQL cannot hold.
    """
    converter = _Converter()
    return {
        converter.key(key, what): converter.value(item, f"{what}.{key}", 1)
        for key, item in attributes.items()
    }


def instant(value: object) -> datetime:
    """Return a time in UTC from ISO 8601 (without an offset: UTC), epoch seconds, a date or a datetime.

    Raises ValueError saying what would be right.
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass
    shown = repr(value)
    raise ValueError(
        f"{shown[:60]} is no time; write ISO 8601 (2024-05-01T09:30:00Z; no offset: UTC) or epoch seconds"
    )


class _Converter:
    def __init__(self) -> None:
        self._values = 0

    def key(self, key: object, what: str) -> str:
        return storable(
            key if isinstance(key, str) else str(self.value(key, what, MAX_DEPTH)), f"a key of {what}"
        )

    def value(self, value: object, what: str, depth: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES or depth > MAX_DEPTH:
            raise MalformedInput(
                f"attributes hold more than {MAX_VALUES} values or {MAX_DEPTH} levels, at {what[:200]}"
            )
        if isinstance(value, str):
            return storable(value, what)
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, Mapping):
            return {self.key(k, what): self.value(v, f"{what}.{k}", depth + 1) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item, f"{what}[{i}]", depth + 1) for i, item in enumerate(value)]
        raise MalformedInput(
            f"{what} is {repr(value)[:60]}, which JSON cannot hold; use text, finite numbers, dates or lists",
            field=what,
        )
