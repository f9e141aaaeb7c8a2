"""Pages as HTML. Everything is escaped by the engine; what no eye could see is written out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from planner.surfaces.viewer import plot, words
from planner.surfaces.viewer.links import anchor_of
from planner.surfaces.visible import excerpt, is_seen, visible, written_out
from planner.trace.told import counted, density, kind_told
from planner.trace.told import words as plain_words
from planner.types import Outcome

STATIC = Path(__file__).parent / "static"

_KEPT = "\n\t"
_UNSEEN = re.compile(r"[^\x20-\x7e]")


def shown(text: object, keep: str = _KEPT) -> Markup:
    """Return stored text for a page: what controls or reorders a line is a mark that says which it is."""
    out, plain = [Markup()], 0
    written = str(text)
    for found in _UNSEEN.finditer(written):
        char = found[0]
        if char in keep or is_seen(char):
            continue
        out.append(Markup.escape(written[plain : found.start()]))
        out.append(Markup('<span class="unseen">{}</span>').format(written_out(char)))
        plain = found.end()
    out.append(Markup.escape(written[plain:]))
    return Markup().join(out)


def time(at: datetime | None) -> Markup:
    """Return a time in UTC, which a script tells in the reader's zone where there is one."""
    if at is None:
        return Markup("–")
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"), utc.strftime("%Y-%m-%d %H:%M:%S")
    )


def age(at: datetime, now: datetime) -> str:
    """Return how long ago a time was, in its largest unit."""
    seconds = max(0, int((now - at).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now" if seconds < 5 else f"{seconds} s ago"


def number(value: float | None) -> str:
    """Return a whole number with separators."""
    return "–" if value is None else f"{value:,.0f}"


def share(value: float | None) -> str:
    """Return a share from 0 to 1 as a percentage."""
    return "–" if value is None else "<1%" if 0 < value < 0.01 else f"{value:.0%}"


def milliseconds(value: float | None) -> str:
    """Return milliseconds with as many digits as matter."""
    return "–" if value is None else f"{value:,.0f} ms" if value >= 100 else f"{value:,.1f} ms"


def as_json(value: Any) -> str:
    """Return JSON data as people read it."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def brief(value: Any) -> str:
    """Return a value of a request, a setting or a figure in short; numbers with separators."""
    if value is None:
        return "–"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else as_json(value)


@cache
def environment() -> Environment:
    """Return the templates, read once."""
    made = Environment(
        loader=PackageLoader("planner.surfaces.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Callable[..., Any]] = {
        "shown": shown,
        "excerpt": excerpt,
        "time": time,
        "age": age,
        "number": number,
        "share": share,
        "ms": milliseconds,
        "words": plain_words,
        "counted": counted,
        "density": density,
        "kind": kind_told,
        "anchor": anchor_of,
        "as_json": as_json,
        "plain": lambda value: visible(str(value), _KEPT),
        "counted_number": lambda value, noun: f"{value:,} {noun}{'' if value == 1 else 's'}",
        "brief": brief,
    }
    made.filters.update(filters)
    made.globals.update(
        words=words, Outcome=Outcome, plot=plot, version=version("evidence-planner"), stamp=stamp()
    )
    return made


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page. A lone surrogate, which no page can hold, is written out before it comes here."""
    return environment().get_template(template).render(context)


@cache
def stamp() -> str:
    """Return a digest of our static files, so that browsers may keep them while they are the same."""
    digest = sha256()
    for path in sorted(STATIC.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
