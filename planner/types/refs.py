"""How spans and plans are named, and the words that every stage shares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import UUID

from planner.errors import RequestError

JsonObject = Mapping[str, Any]

NO_TEXT_HASH = bytes(32)
"""The text hash of a candidate that came without text."""

OPEN_TX = 2**63 - 1
"""`tx_to` of a row that is current."""

SourceClass = Literal["truth", "cache"]
Trust = Literal["untrusted", "external", "internal", "verified"]

TRUST_ORDER: tuple[Trust, ...] = ("untrusted", "external", "internal", "verified")
"""Trust classes from least to most."""

STRUCTURE = frozenset({"part_of", "next", "links_to"})
"""The predicates of the edges that parsing itself makes."""

MENTIONS = "mentions"
"""The predicate of the edges from texts to the sources whose titles they mention; nobody else may use it."""

_REF = re.compile(r"(?P<source>.+)@(?P<tx>\d{1,19}):(?P<start>\d{1,19})-(?P<end>\d{1,19})", re.DOTALL)


class SpanRef(NamedTuple):
    """One span of one source version, written `source@tx:start-end`; ordered as `source_id`, `tx`, range."""

    source_id: str
    version_tx: int
    start: int
    end: int

    def __str__(self) -> str:
        """Write the reference."""
        return f"{self.source_id}@{self.version_tx}:{self.start}-{self.end}"

    @classmethod
    def parse(cls, text: str) -> SpanRef:
        """Read `source@tx:start-end`; the source id may itself hold `@` and `:`. Raises RequestError."""
        match = _REF.fullmatch(text)
        if match is None:
            raise RequestError(f"{text!r} is not a span reference; write source@tx:start-end")
        return cls(match["source"], int(match["tx"]), int(match["start"]), int(match["end"]))


@dataclass(frozen=True, slots=True)
class PlanRef:
    """A plan is known as `<scope>:<plan_id>`, so that a lookup knows its scope."""

    scope: str
    plan_id: str

    def __str__(self) -> str:
        """Write the reference."""
        return f"{self.scope}:{self.plan_id}"

    @classmethod
    def parse(cls, text: str) -> PlanRef:
        """Read `<scope>:<plan_id>`. Raises RequestError."""
        scope, colon, plan_id = text.partition(":")
        try:
            canonical = str(UUID(plan_id))
        except ValueError:
            canonical = ""
        if not (scope and colon and canonical == plan_id.lower()):
            raise RequestError(f"{text!r} is not a plan reference; write <scope>:<plan_id>")
        return cls(scope, canonical)
