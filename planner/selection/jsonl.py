"""Candidates as JSON lines, for callers who bring their own retriever.

A line holds `source_id`, `version_tx`, `start`, `end`, `kind`, `class`, `score`, and either `tokens` or
`text`; all lines the same one of the two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.errors import BadCandidate
from planner.hashing import text_hash
from planner.ports import TokenCounter
from planner.selection.weigh import LIMIT
from planner.tokens import count_text
from planner.types import Candidate, SourceClass, SpanRef

Offset = Annotated[int, Field(ge=0, lt=LIMIT)]


class CandidateLine(BaseModel):
    """One line, checked field by field; strict, so that neither `1.0` nor `"1"` is an offset."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    source_id: Annotated[str, Field(min_length=1)]
    version_tx: Offset
    start: Offset
    end: Offset
    kind: str
    source_class: Annotated[SourceClass, Field(alias="class")]
    score: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    tokens: Offset | None = None
    text: str | None = None

    def to_candidate(self) -> Candidate:
        """Return the candidate; one that came with text has its hash, and no tokens yet."""
        known = self.model_dump(exclude={"tokens", "text"})
        if self.text is None:
            return Candidate(**known, tokens=self.tokens or 0)
        return Candidate(**known, tokens=0, text_hash=text_hash(self.text.encode()))


@dataclass(frozen=True, slots=True)
class ParsedLines:
    """Candidates in the order of their lines, and their texts where lines brought text (else empty)."""

    candidates: tuple[Candidate, ...]
    texts: tuple[str, ...]

    def counted(self, counter: TokenCounter) -> tuple[Candidate, ...]:
        """Return the candidates with the tokens of their texts."""
        pairs = zip(self.candidates, self.texts, strict=True)
        return tuple(replace(candidate, tokens=count_text(counter, text)) for candidate, text in pairs)


def read_candidates(lines: Iterable[bytes], kinds: Collection[str]) -> ParsedLines:
    """Read candidates, a JSON object a line, of the given span kinds; blank lines are skipped.

    Raises BadCandidate naming the line and what is wrong in it: a missing or unknown field, a value out of
    range, an empty range, an unknown kind, a span that an earlier line has, tokens beside text.
    """
    candidates: list[Candidate] = []
    texts: list[str] = []
    first_lines: dict[SpanRef, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        read = _read(line, number, kinds)
        candidate = read.to_candidate()
        earlier = first_lines.setdefault(candidate.ref, number)
        if earlier != number:
            raise _bad(number, f"{candidate.ref} is on line {earlier} already")
        if read.text is not None:
            texts.append(read.text)
        candidates.append(candidate)
        if len(texts) not in (0, len(candidates)):
            raise _bad(
                number, "lines before it differ in whether they give tokens or text; give all the same"
            )
    return ParsedLines(tuple(candidates), tuple(texts))


def _read(line: bytes, number: int, kinds: Collection[str]) -> CandidateLine:
    try:
        read = CandidateLine.model_validate_json(line)
    except ValidationError as error:
        raise _bad(number, _first_complaint(error)) from None
    if read.end <= read.start:
        raise _bad(number, f"end = {read.end} must be greater than start = {read.start}")
    if read.kind not in kinds:
        raise _bad(number, f"unknown kind {read.kind!r}; the kinds are {', '.join(kinds)}")
    if (read.tokens is None) == (read.text is None):
        raise _bad(number, "give either tokens or text")
    return read


def _first_complaint(error: ValidationError) -> str:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"the field {field!r} is missing"
    if first["type"] == "extra_forbidden":
        return f"unknown field {field!r}"
    message = first["msg"][0].lower() + first["msg"][1:]
    return f"{field}: {message}" if field else message


def _bad(number: int, what: str) -> BadCandidate:
    return BadCandidate(f"line {number}: {what}", line=number)
