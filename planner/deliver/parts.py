"""What of a bundle's tokens is framing, what labels, and what the bodies themselves."""

from __future__ import annotations

from typing import NamedTuple

from planner.ports import TokenCounter
from planner.tokens import count_text
from planner.types import Delivery


class Parts(NamedTuple):
    """Tokens by part; they add up to what was used."""

    framing: int
    labels: int
    bodies: int


def parts(delivery: Delivery, counter: TokenCounter) -> Parts:
    """Return the tokens of a bundle by part, counted by its counter.

    A counter does not count a text as the sum of its pieces. So the bodies are what the text costs more than
    without them, the framing is what its first and last line cost, and the labels are the rest.
    """
    text = delivery.text.encode()
    kept, at = bytearray(), 0
    for item in delivery.items:
        kept += text[at : item.start]
        at = item.end
    bare = (bytes(kept) + text[at:]).decode()
    lines = bare.splitlines(keepends=True)
    framed = count_text(counter, lines[0] + lines[-1]) if len(lines) > 1 else delivery.used
    without = min(delivery.used, max(framed, count_text(counter, bare)))
    return Parts(min(framed, without), max(0, without - framed), delivery.used - without)
