"""Answers about stored things: our sentences, which name sources and nodes, as one piece of a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.deliver.envelope import Label, closing, framing, place_label, seal, tag_of
from planner.errors import InsufficientEvidence
from planner.ports import TokenCounter
from planner.tokens import count_text
from planner.types import SpanRef


@dataclass(frozen=True, slots=True)
class Told:
    """The bundle of the first `lines` lines; `used` is its count."""

    text: str
    used: int
    lines: int


def tell(name: str, lines: Sequence[str], *, budget: int, counter: TokenCounter) -> Told:
    """Put lines under a name into a bundle, as many of the first as fit into `budget` tokens.

    A name stands where a source does. Raises InsufficientEvidence where the first does not fit, CounterError.
    """
    tag = tag_of("\n".join((name, *lines)).encode())

    def told(number: int) -> Told:
        body = "\n".join(lines[:number])
        place = place_label(SpanRef(name, 0, 0, len(body.encode())), source=True)
        envelope = seal(tag, Label((), place, ()), body)
        text = framing(tag) + envelope.text + closing(tag)
        return Told(text, count_text(counter, text), number)

    found = least = told(1)
    if least.used > budget:
        raise InsufficientEvidence(
            f"nothing fits: the framing and the first line take more than {budget} tokens of {counter.name}; "
            f"a budget of {least.used} would do",
            reason="nothing_fits",
            sufficient_budget=least.used,
        )
    for number in range(2, len(lines) + 1):
        longer = told(number)
        if longer.used > budget:
            break
        found = longer
    return found
