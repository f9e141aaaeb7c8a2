"""The bundle of a plan as a model reads it; nothing is written down by looking at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from planner.deliver.parts import parts
from planner.errors import InsufficientEvidence, RequestError
from planner.surfaces.viewer.visit import Answer, Page, PlainText, Visit
from planner.tokens import counter as counter_named
from planner.types import DeliveredItem, Delivery, Unit


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the text: framing, the labels around bodies, or a body with the item that it is of."""

    kind: Literal["framing", "label", "body"]
    text: str
    item: DeliveredItem | None = None


def bundle(visit: Visit) -> Answer:
    """Show a bundle of a unit and a budget; `raw` is the text alone."""
    unit, budget, counter = visit.asked("unit"), visit.maybe("budget"), visit.asked("counter")
    plan = visit.planner.recorded(visit.plan).to_plan({})
    made: Delivery | None = None
    refusal: InsufficientEvidence | RequestError | None = None
    try:
        made = visit.planner.deliver(
            visit.plan, cast("Unit", unit), budget_tokens=budget, counter=counter,
            neighbours=visit.number("neighbours", 1), keep=False,
        )  # fmt: skip
    except (InsufficientEvidence, RequestError) as error:
        refusal = error
    if made and visit.asked("raw"):
        return PlainText(made.text)
    context = {
        "plan": plan,
        "made": made,
        "refusal": refusal,
        "stretches": list(stretches(made)) if made else [],
        "parts": parts(made, counter_named(made.counter, visit.planner.engine.counters)) if made else None,
        "asked": {"unit": unit or "", "budget": budget or "", "counter": counter or "",
                  "neighbours": visit.number("neighbours", 1)},
        "deliveries": visit.planner.deliveries(visit.plan),
    }  # fmt: skip
    return Page("bundle.html", context, 200 if made else 422)


def stretches(made: Delivery) -> Iterator[Stretch]:
    """Cut a bundle into its first and last line, bodies, and the labels between them."""
    text = made.text.encode()
    first = text.find(b"\n") + 1
    last = text.rstrip(b"\n").rfind(b"\n") + 1
    yield Stretch("framing", text[:first].decode())
    at = first
    for item in made.items:
        yield Stretch("label", text[at : item.start].decode())
        if item.start < item.end:
            yield Stretch("body", text[item.start : item.end].decode(), item)
        at = item.end
    yield Stretch("label", text[at:last].decode())
    yield Stretch("framing", text[last:].decode())
