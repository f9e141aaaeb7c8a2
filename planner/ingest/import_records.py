"""The records of the open JSONL import: docs/jsonl-import.md says what each means."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from planner.errors import MalformedInput
from planner.ingest.facts import instant, json_attributes
from planner.ingest.ids import MAX_ID_BYTES
from planner.types import MENTIONS, SourceClass, Trust

MAX_DIMENSIONS = 16_000
MAX_FLOAT32 = 3.4028234663852886e38


def _id(value: str) -> str:
    if not 1 <= len(value.encode()) <= MAX_ID_BYTES:
        raise ValueError(f"must be 1 to {MAX_ID_BYTES} bytes long, not {len(value.encode())}")
    return value


def _attributes(value: object) -> object:
    return json_attributes(value) if isinstance(value, dict) else value


def _component(value: float) -> float:
    if not math.isfinite(value) or abs(value) > MAX_FLOAT32:
        raise ValueError("must be a finite 32-bit float")
    return value


def _plain(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not hold NUL characters")
    return value


def _predicate(value: str) -> str:
    if value == MENTIONS:
        raise ValueError(f"{MENTIONS!r} is the planner's own, for titles that texts mention; use another")
    return value


Text = Annotated[str, AfterValidator(_plain)]
Id = Annotated[Text, AfterValidator(_id)]
Predicate = Annotated[Id, AfterValidator(_predicate)]
Attributes = Annotated[dict[str, Any], BeforeValidator(_attributes)]
Time = Annotated[datetime, BeforeValidator(instant)]
Offset = Annotated[int, Field(ge=0, lt=2**63)]
Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Component = Annotated[float, AfterValidator(_component)]


class Record(BaseModel):
    """Base of every record: strict and closed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SourceRecord(Record):
    """A source and its text."""

    record: Literal["source"]
    source_id: Id
    text: Text
    media_type: Text | None = None
    title: Text | None = None
    uri: Text | None = None
    trust: Trust | None = None
    source_class: SourceClass | None = Field(default=None, alias="class")
    attributes: Attributes = {}
    observed_at: Time | None = None
    conversation_id: Id | None = None
    position: Offset | None = None


class Range(Record):
    """Where a node's evidence is: a span of a source of the same file."""

    source_id: Id
    start: Offset
    end: Offset

    @property
    def key(self) -> tuple[str, int, int]:
        """The span's key within the file."""
        return self.source_id, self.start, self.end


class SpanRecord(Range):
    """A span of a source, in bytes of its text."""

    record: Literal["span"]
    kind: Id = "paragraph"
    heading_path: tuple[Text, ...] = ()
    speaker: Text | None = None


class _Dated(Record):
    confidence: Confidence = 1.0
    valid_from: Time | None = None
    valid_to: Time | None = None

    @model_validator(mode="after")
    def _ordered(self) -> _Dated:
        if self.valid_from is not None and self.valid_to is not None and self.valid_from >= self.valid_to:
            raise ValueError("valid_from must be before valid_to")
        return self


class NodeRecord(_Dated):
    """A node and the spans that it stands on."""

    record: Literal["node"]
    node_id: Id
    kind: Id
    label: Text = ""
    spans: tuple[Range, ...] = ()
    attributes: Attributes = {}
    observed_at: Time | None = None


class EdgeRecord(_Dated):
    """A directed edge; each end is a node of the file or one that the store already has."""

    record: Literal["edge"]
    src: Id
    dst: Id
    predicate: Predicate


class EmbeddingRecord(Record):
    """A vector that the caller computed for a node of the file."""

    record: Literal["embedding"]
    node_id: Id
    model: Id
    vector: Annotated[tuple[Component, ...], Field(min_length=1, max_length=MAX_DIMENSIONS)]


AnyRecord = Annotated[
    SourceRecord | SpanRecord | NodeRecord | EdgeRecord | EmbeddingRecord, Field(discriminator="record")
]
_READER: TypeAdapter[AnyRecord] = TypeAdapter(AnyRecord)


def read_record(line: str, number: int) -> AnyRecord:
    """Return the record of one line. Raises MalformedInput naming the line, the field and the rule."""
    try:
        return _READER.validate_json(line)
    except MalformedInput as error:
        raise MalformedInput(f"line {number}: {error}", line=number) from None
    except ValidationError as error:
        raise _explained(error, number) from None


def _explained(error: ValidationError, number: int) -> MalformedInput:
    first = error.errors(include_url=False)[0]
    # The first step of the location is the kind of record.
    field = ".".join(str(part) for part in first["loc"][1:])
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = "no such field in this record"
    elif first["type"] == "missing":
        message = "is required"
    elif first["type"] in ("union_tag_invalid", "union_tag_not_found"):
        message = "`record` must be source, span, node, edge or embedding"
    place = f"line {number}, {field}" if field else f"line {number}"
    shown = repr(first["input"])[:60]
    got = "" if first["type"] in ("missing", "json_invalid") else f" (got {shown})"
    return MalformedInput(f"{place}: {message}{got}", line=number, field=field or None)
