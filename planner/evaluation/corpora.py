"""Evidence-labelled corpora: a folder with sources, and questions that say which evidence answers them.

`sources.jsonl` has a source a line: `scope`, `source_id`, `title`, `media_type`, and `text` or `messages`
(`id`, `speaker`, `text`). `questions.jsonl` has a question a line: `question_id`, `scope`, `text`,
`category`, `answer` and `evidence`, a list of `{source_id, message_id}` or of `{source_id, start, end}` in
bytes of `text`. `corpus.json` may give a `name`. Fields beyond these are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from planner.errors import MalformedInput, UnreadableInput
from planner.request import SCOPE_PATTERN, Id, Text, request_error

Line = TypeVar("Line", bound="_Line")


def _words(value: object) -> object:
    """Let a number be written as a number: ids and answers often are."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _alternatives(value: object) -> object:
    """Return an answer, or several that are as good, as a tuple of texts."""
    if value is None:
        return ()
    return tuple(map(_words, value)) if isinstance(value, list) else (_words(value),)


Word = Annotated[str, BeforeValidator(_words)]
ScopeName = Annotated[str, Field(pattern=SCOPE_PATTERN)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Message(_Line):
    """A turn of a conversation."""

    id: Word | None = None
    speaker: str | None = None
    text: str


class Source(_Line):
    """What is ingested as one source: a text, or the messages of a conversation."""

    scope: ScopeName
    source_id: Id
    title: str | None = None
    media_type: str | None = None
    text: str | None = None
    messages: Annotated[tuple[Message, ...] | None, Field(strict=False)] = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Source:
        if (self.text is None) == (self.messages is None):
            raise ValueError("a source has text or messages, one of both")
        return self


class Evidence(_Line):
    """What a question needs: a message, or the bytes [start, end) of a source's text."""

    source_id: Id
    message_id: Word | None = None
    start: Annotated[int, Field(ge=0)] | None = None
    end: int | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Evidence:
        if self.message_id is not None:
            if self.start is not None or self.end is not None:
                raise ValueError("evidence is a message or a range, not both")
        elif self.start is None or self.end is None or self.end <= self.start:
            raise ValueError("evidence is a message_id, or a start and an end beyond it")
        return self

    def __str__(self) -> str:
        """Name it."""
        return f"{self.source_id}: {self.message_id or f'{self.start}-{self.end}'}"


class Question(_Line):
    """What is asked, and what would answer it; without evidence nothing in the scope does."""

    question_id: Word
    scope: ScopeName
    text: Text
    category: str = "all"
    answers: Annotated[tuple[str, ...], BeforeValidator(_alternatives)] = Field((), alias="answer")
    evidence: Annotated[tuple[Evidence, ...], Field(strict=False)] = ()


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus in the order of its files."""

    name: str
    sources: tuple[Source, ...]
    questions: tuple[Question, ...]


def read_corpus(folder: Path) -> Corpus:
    """Read and check a corpus. Raises UnreadableInput, and MalformedInput naming the file, line and field."""
    sources = tuple(_lines(folder / "sources.jsonl", Source))
    questions = tuple(_lines(folder / "questions.jsonl", Question))
    if not sources or not questions:
        raise MalformedInput(f"{folder} holds {len(sources)} sources and {len(questions)} questions")
    _refuse_repeated("sources.jsonl", [f"{source.source_id} of {source.scope}" for source in sources])
    _refuse_repeated("questions.jsonl", [question.question_id for question in questions])
    by_id = {(source.scope, source.source_id): source for source in sources}
    for number, question in enumerate(questions, start=1):
        for evidence in question.evidence:
            missing = _missing(evidence, by_id.get((question.scope, evidence.source_id)))
            if missing:
                raise MalformedInput(f"questions.jsonl, line {number}: evidence {evidence}: {missing}")
    return Corpus(_name(folder), sources, questions)


def _name(folder: Path) -> str:
    path = folder / "corpus.json"
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        about = {}
    except (OSError, ValueError) as error:
        raise MalformedInput(f"{path}: {error}") from None
    name = about.get("name") if isinstance(about, dict) else None
    return name if isinstance(name, str) and name else folder.resolve().name


def _lines(path: Path, kind: type[Line]) -> Iterator[Line]:
    for number, line in enumerate(_raw(path), start=1):
        if not line.strip():
            continue
        try:
            yield kind.model_validate_json(line)
        except ValidationError as error:
            raise MalformedInput(f"{path.name}, line {number}: {request_error(error)}", line=number) from None


def _raw(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise UnreadableInput(f"{path} cannot be read: {error.strerror}") from None


def _refuse_repeated(where: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise MalformedInput(f"{where}: {name} is there more than once")
        seen.add(name)


def _missing(evidence: Evidence, source: Source | None) -> str | None:
    """Return what a source lacks that the evidence names, None where it is there."""
    if source is None:
        return "no such source in the question's scope"
    if evidence.message_id is not None:
        known = {message.id for message in source.messages or ()}
        return None if evidence.message_id in known else "the source has no such message"
    if source.text is None:
        return "a conversation's evidence is a message"
    data = source.text.encode("utf-8", "surrogatepass")
    start, end = evidence.start or 0, evidence.end or 0
    if end > len(data):
        return f"the text ends at byte {len(data)}"
    if any(offset < len(data) and data[offset] & 0xC0 == 0x80 for offset in (start, end)):
        return "a bound lies inside a character"
    return None


def json_of(path: Path) -> Any:
    """Return the JSON document of a file. Raises UnreadableInput, MalformedInput."""
    try:
        return json.loads(b"".join(_raw(path)))
    except (ValueError, RecursionError) as error:
        raise MalformedInput(f"{path} is not JSON: {error}") from None
