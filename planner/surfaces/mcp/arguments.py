"""What each tool takes, closed and strict like the library's own requests, and its JSON schema."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from planner.pipeline.read_source import PLACE
from planner.request import SCOPE_PATTERN, Data, Id, Listed, Positive, Request, Text, Time, Window
from planner.trace.phrase import MAX_ASKED_CHARS
from planner.types import Unit

Scope = Annotated[
    str, Field(pattern=SCOPE_PATTERN, description="The scope; may be left out where the server has one")
]
Budget = Annotated[
    Positive,
    Field(
        description="Most tokens of the answer's text, framing and labels included; the operator may lower it"
    ),
]
Counter = Annotated[
    str, Field(min_length=1, max_length=200, description="What counts the tokens; default: the operator's")
]
Plan = Annotated[str, Field(max_length=128, description="A plan, <scope>:<plan_id>, as get_context names it")]
Evidence = Annotated[
    str, Field(min_length=1, max_length=1_024, description="Evidence of the plan, as E1; or a span of it")
]
Source = Annotated[Id, Field(description="The source's id, as an envelope names it before the @")]


class GetContext(Request):
    """A question, and how much may be read for it."""

    question: Annotated[Text, Field(description="What is asked, in plain words")]
    budget_tokens: Budget
    scope: Scope | None = None
    unit: (
        Annotated[
            Unit,
            Field(
                description="What is read of a hit: the chunk, a window around it, its record, or what fits"
            ),
        ]
        | None
    ) = None
    window: Annotated[Window, Field(description="Only what is of this time")] | None = None
    counter: Counter | None = None


class Why(Request):
    """What is asked about a plan."""

    plan: Plan
    what: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_ASKED_CHARS,
            description="A span source@version:start-end, a source, a node, or a phrase",
        ),
    ]
    budget_tokens: Budget
    counter: Counter | None = None


class ReadSource(Request):
    """A source by its id, or what the evidence of a plan is of, and from where it is read."""

    budget_tokens: Budget
    scope: Scope | None = None
    source: Source | None = None
    start: (
        Annotated[
            str,
            Field(
                pattern=PLACE,
                description="<version>:<byte>, as next_start of the answer before; default: the beginning",
            ),
        ]
        | None
    ) = None
    plan: Plan | None = None
    evidence: Evidence | None = None
    counter: Counter | None = None

    @model_validator(mode="after")
    def _one_way(self) -> ReadSource:
        cited = self.plan is not None and self.evidence is not None
        named = (self.plan, self.evidence) == (None, None) and self.source is not None
        if not named and not (cited and (self.source, self.scope, self.start) == (None, None, None)):
            raise ValueError("name a source, or a plan and its evidence, which has its scope and start")
        return self


class Message(Data):
    """A turn of a conversation."""

    content: Annotated[str, Field(min_length=1)]
    speaker: Annotated[str, Field(max_length=512)] | None = None
    role: Annotated[str, Field(max_length=512)] | None = None
    time: Time | None = None
    id: (
        Annotated[str, Field(max_length=512, description="One that is there already is passed over")] | None
    ) = None


class Remember(Request):
    """A text to store, or turns to put behind a conversation's last."""

    source: Annotated[
        Id, Field(description="The id of the document or conversation: a new one, or one to go on")
    ]
    scope: Scope | None = None
    text: Annotated[str, Field(min_length=1, description="The whole text of a document")] | None = None
    title: Annotated[str, Field(max_length=1_000, description="The document's title")] | None = None
    messages: (
        Annotated[
            tuple[Message, ...],
            Field(min_length=1, max_length=1_000),
            Listed,  # after the limits, which are of a list, and not of a text, in the schema then
            Field(description="The next turns of a conversation, in order"),
        ]
        | None
    ) = None
    idempotency_key: (
        Annotated[
            str, Field(min_length=1, max_length=200, description="Under one key the same is stored once")
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Remember:
        if (self.text is None) == (self.messages is None):
            raise ValueError("give a text, or messages")
        if self.messages is not None and self.title is not None:
            raise ValueError("title: a conversation has none")
        return self


class VerifyCitation(Request):
    """A quote, and the evidence of a plan that it cites."""

    plan: Plan
    evidence: Evidence
    quote: Annotated[str, Field(max_length=1_000_000, description="The words, exactly")]


def schema(arguments: type[Request]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without what says nothing."""
    found = _brief(arguments.model_json_schema())
    assert isinstance(found, dict)
    return {name: value for name, value in found.items() if name != "description"}


def _brief(value: Any) -> Any:
    """Leave out generated titles, and that an optional argument may be null or is null by default."""
    if isinstance(value, list):
        return [_brief(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: {key: _brief(item) for key, item in part.items()}
        if name in ("properties", "$defs")
        else _brief(part)
        for name, part in value.items()
        if not (name == "title" and isinstance(part, str)) and (name, part) != ("default", None)
    }
    options = [option for option in kept.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        del kept["anyOf"]
        return {**options[0], **kept}
    return kept
