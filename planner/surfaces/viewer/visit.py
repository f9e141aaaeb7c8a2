"""One request as a page sees it, and what a page gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from planner.client import Planner
from planner.errors import RequestError
from planner.surfaces.http.security import Access
from planner.surfaces.viewer.links import Links
from planner.types import PlanRef


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that was let in: what it may reach, where it is, and what it brought."""

    planner: Planner
    access: Access
    links: Links
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    several: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        """The time by the planner's clock."""
        return self.planner.engine.clock()

    @property
    def scope(self) -> str:
        """The scope of the path. Raises RequestError, UnknownScope."""
        return self.access.scope(self.path["scope"])

    @property
    def plan(self) -> PlanRef:
        """The plan of the path. Raises RequestError, UnknownPlan."""
        return self.access.plan(f"{self.path['scope']}:{self.path['plan']}")

    @property
    def may_write(self) -> bool:
        """Whether expectations may be added."""
        return self.access.grant is None or "write" in self.access.grant.permissions

    def asked(self, name: str) -> str | None:
        """Return a parameter of the query, None where it is absent or empty."""
        return self.query.get(name, "").strip() or None

    def number(self, name: str, default: int = 0) -> int:
        """Return a whole number of the query. Raises RequestError."""
        found = self.maybe(name)
        return default if found is None else found

    def maybe(self, name: str) -> int | None:
        """Return a whole number of the query, None where it is absent. Raises RequestError."""
        text = self.asked(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise RequestError(f"{name} = {text!r} is not a whole number", field=name)
        return int(text)


@dataclass(frozen=True, slots=True)
class Page:
    """What a page is made of: its template and what this shows."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """An address that is to be asked for instead."""

    url: str


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text byte for byte, which no browser may take for a page."""

    text: str


Answer = Page | Redirect | PlainText
