"""What is asked for, a plan with its filters or a delivery: data, validated here, never SQL text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from planner.errors import RequestError
from planner.settings import PROFILES, Profile, Settings
from planner.types import TRUST_ORDER, OnMisfit, Unit

SCOPE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
MAX_FILTER_DEPTH = 16
LIMITED = ("k", "hops", "roots", "fanout", "structured_limit", "max_nodes", "max_spans")
"""Request fields that may lower the operator's value of the same name, never raise it."""

PLAIN_FIELDS = ("kind", "label", "source_id", "class", "trust", "confidence")

Scalar = str | int | float | bool | None
Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Id = Annotated[str, Field(min_length=1, max_length=512)]
Listed = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
Positive = Annotated[int, Field(ge=1, le=2**53)]


def _iso(value: object) -> object:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("write an ISO 8601 time with its offset, as 2026-01-31T00:00:00Z") from None
    return value


Time = Annotated[AwareDatetime, BeforeValidator(_iso)]
"""A point in time with its zone; JSON writes it as ISO 8601."""


class Data(BaseModel):
    """Base of everything a caller sends: strict, closed, frozen; no NUL, which PostgreSQL cannot hold."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _no_nul(cls, value: Any) -> Any:
        _refuse_unstorable(value)
        return value


class Request(Data):
    """Base of what a call takes as a whole: what is wrong with it is a RequestError."""

    def __init__(self, /, **data: Any) -> None:
        """Validate `data`. Raises RequestError naming the field, the value and the rule."""
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise request_error(error) from None


class Condition(Data):
    """One comparison of a node's field; `attributes.<path>` reaches into its JSON attributes."""

    field: Annotated[str, Field(max_length=512)]
    op: Literal["eq", "in", "prefix", "contains", "gte", "lte"]
    value: Annotated[Scalar | tuple[Scalar, ...], Listed]

    @field_validator("field")
    @classmethod
    def _known_field(cls, name: str) -> str:
        path = name.removeprefix("attributes.") if name.startswith("attributes.") else None
        if name not in PLAIN_FIELDS and not (path and all(path.split("."))):
            raise ValueError(f"unknown field; use one of {', '.join(PLAIN_FIELDS)} or attributes.<path>")
        return name

    @model_validator(mode="after")
    def _fits(self) -> Condition:
        many = isinstance(self.value, tuple)
        if many != (self.op == "in"):
            raise ValueError("`in` takes a list of values, every other op a single one")
        values: tuple[Scalar, ...] = self.value if isinstance(self.value, tuple) else (self.value,)
        is_attribute = self.field.startswith("attributes.")
        if self.field == "confidence":
            if self.op not in ("eq", "in", "gte", "lte") or not all(_is_number(v) for v in values):
                raise ValueError("confidence takes eq, in, gte or lte and numbers")
        elif not is_attribute and not all(isinstance(v, str) for v in values):
            raise ValueError(f"{self.field} is compared with strings")
        if self.field == "trust" and not all(v in TRUST_ORDER for v in values):
            raise ValueError(f"trust is one of {', '.join(TRUST_ORDER)}")
        if self.field == "class" and not all(v in ("truth", "cache") for v in values):
            raise ValueError("class is truth or cache")
        if self.op in ("prefix", "contains") and not isinstance(self.value, str):
            raise ValueError(f"{self.op} takes a string")
        ordered = _is_number(self.value) or isinstance(self.value, str)
        if is_attribute and self.op in ("gte", "lte") and not ordered:
            raise ValueError(f"{self.op} takes a number or a string")
        return self


class All(Data):
    """True where every part is."""

    all: Annotated[tuple[Filter, ...], Listed, Field(max_length=256)]


class AnyOf(Data):
    """True where one part is."""

    any: Annotated[tuple[Filter, ...], Listed, Field(max_length=256)]


class Not(Data):
    """True where its part is not."""

    not_: Annotated[Filter, Field(alias="not")]


def _tag(value: object) -> str:
    if isinstance(value, Mapping):
        return next((key for key in ("all", "any", "not") if key in value), "condition")
    return next(
        (tag for kind, tag in ((All, "all"), (AnyOf, "any"), (Not, "not")) if isinstance(value, kind)),
        "condition",
    )


Filter = Annotated[
    Annotated[All, Tag("all")]
    | Annotated[AnyOf, Tag("any")]
    | Annotated[Not, Tag("not")]
    | Annotated[Condition, Tag("condition")],
    Discriminator(_tag),
]


class Window(Data):
    """A half-open interval of time on one axis; a missing end is unbounded."""

    axis: Literal["valid", "observed"] = "valid"
    from_: Annotated[Time | None, Field(alias="from")] = None
    to: Time | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Window:
        if self.from_ is None and self.to is None:
            raise ValueError("give from, to or both")
        if self.from_ is not None and self.to is not None and self.from_ >= self.to:
            raise ValueError("from must be before to")
        return self


class Seed(Data):
    """A node to start from, with its score."""

    node_id: Id
    score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 1.0


class PlanRequest(Request):
    """One question to a scope. Absent limits take the operator's; `effective` fills them in."""

    scope: Annotated[str, Field(pattern=SCOPE_PATTERN)]
    text: Text | None = None
    parts: Annotated[tuple[Text, ...], Listed, Field(max_length=32)] = ()
    embedding: Annotated[tuple[float, ...], Listed, Field(min_length=1, max_length=16_000)] | None = None
    match: Filter | None = None
    must: Filter | None = None
    window: Window | None = None
    seeds: Annotated[tuple[Seed, ...], Listed, Field(max_length=1_000)] = ()
    k: Positive | None = None
    hops: Annotated[int, Field(ge=0, le=2)] | None = None
    roots: Positive | None = None
    fanout: Positive | None = None
    direction: Literal["both", "out", "in"] = "both"
    structured_limit: Positive | None = None
    max_nodes: Positive | None = None
    max_spans: Positive | None = None
    min_score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    method: Literal["auto", "exact", "ann"] | None = None
    budget_tokens: Positive | None = None
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    context_window: Positive | None = None
    counter: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    plan_model: Literal["v1", "v2"] | None = None
    profile: Profile | None = None
    allow_ungrounded: bool = False
    as_of: Annotated[int, Field(ge=0, le=2**62)] | None = None

    @field_validator("embedding")
    @classmethod
    def _finite(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None and not all(abs(x) < 1e30 for x in value):
            raise ValueError("every component must be a finite number")
        return value

    @model_validator(mode="after")
    def _asks_something(self) -> PlanRequest:
        if not (self.text or self.parts or self.embedding or self.match or self.seeds):
            raise ValueError("ask something: text, parts, embedding, match or seeds")
        if self.embedding is not None and self.parts:
            raise ValueError("give parts to be embedded or an embedding, not both")
        return self

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> PlanRequest:
        """Read a request from JSON data. Raises RequestError naming the field and what it takes."""
        for name in ("match", "must"):
            _refuse_deep(data.get(name), name)
        return cls(**data)

    @classmethod
    def of(
        cls, scope: str | PlanRequest | Mapping[str, Any], text: str | None, fields: Mapping[str, Any]
    ) -> PlanRequest:
        """Return a given request, or one of a scope, a question and further fields. Raises RequestError."""
        if isinstance(scope, PlanRequest):
            if text is not None or fields:
                raise RequestError("give a request, or its fields, not both")
            return scope
        data = {"scope": scope} if isinstance(scope, str) else dict(scope)
        return cls.parse({**data, **({"text": text} if text is not None else {}), **fields})

    def effective(self, settings: Settings) -> PlanRequest:
        """Return the request with every default filled in. Raises RequestError where it raises a limit."""
        filled: dict[str, Any] = {}
        for name in (*LIMITED, "min_score", "method", "plan_model"):
            mine, operators = getattr(self, name), getattr(settings, name)
            if name in LIMITED and mine is not None and mine > operators:
                raise RequestError(
                    f"{name} = {mine} is above the operator's limit {operators}; a request may only lower it",
                    field=name,
                )
            filled[name] = operators if mine is None else mine
        filled["budget_tokens"] = self.budget_tokens or settings.default_budget
        return self.model_copy(update=filled)

    def within(self, settings: Settings) -> Settings:
        """Return the operator's settings under the request's profile. Raises RequestError where it is wider.

        The profile that the operator has already changes nothing: what is set beside it stays.
        """
        if self.profile is None or self.profile == settings.profile:
            return settings
        bundle, limit = PROFILES[self.profile], settings.max_frac_per_source
        share = bundle["max_frac_per_source"]
        if share > limit:
            raise RequestError(
                f"profile = {self.profile!r} lets one source take {share:g} of a plan, above the operator's "
                f"limit {limit:g}; a request may only lower it",
                field="profile",
            )
        return settings.model_copy(update={"profile": self.profile, **bundle})

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON data; `parse` reads it back."""
        return self.model_dump(mode="json", by_alias=True)


class DeliverRequest(Request):
    """How evidence is delivered. An absent counter or budget is the plan's, an absent unit the operator's."""

    unit: Unit | None = None
    budget_tokens: Positive | None = None
    counter: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    neighbours: Annotated[int, Field(ge=0, le=1_000)] = 1
    on_misfit: OnMisfit | None = None
    max_frac: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None


def request_error(error: ValidationError) -> RequestError:
    """Turn the first complaint of pydantic into one of ours, naming the field, the value and the rule."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part != "condition") or "request"
    if first["type"] == "extra_forbidden":
        return RequestError(f"unknown field {field!r}", field=field)
    message = first["msg"].removeprefix("Value error, ")
    shown = repr(first["input"])
    shown = shown if len(shown) <= 80 else shown[:77] + "…"
    return RequestError(f"{field}: {message} (got {shown})", field=field)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _refuse_deep(value: object, name: str) -> None:
    """Refuse filters nested deeper than a statement should be, without recursing to find out."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > 2 * MAX_FILTER_DEPTH:
            raise RequestError(f"{name} is nested deeper than {MAX_FILTER_DEPTH} levels", field=name)
        children = [v for v in level if isinstance(v, (dict, list, tuple))]
        level = [x for v in children for x in (v.values() if isinstance(v, dict) else v)]


def _refuse_unstorable(value: object) -> None:
    if isinstance(value, str):
        if "\x00" in value:
            raise ValueError("NUL characters are not allowed")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("lone surrogates are not allowed") from None
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_unstorable(key)
            _refuse_unstorable(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _refuse_unstorable(item)


for _model in (All, AnyOf, Not, PlanRequest):
    _model.model_rebuild()
