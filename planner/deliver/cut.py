"""Where a unit may be cut, and how the largest part that fits is found."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Final

import regex

from planner.deliver.text import Texts
from planner.types import SpanRef

_GRAPHEME: Final = regex.compile(r"\X")


def grapheme_ends(texts: Texts, ref: SpanRef, most: int) -> list[int]:
    """Return where the grapheme clusters of a range end, up to `most` bytes from its start.

    The last cluster of what was looked at is not among them where the range goes on: it may go on too.
    """
    seen = ref._replace(end=min(ref.end, ref.start + most))
    text = (texts.slice(seen) or b"").decode(errors="ignore")
    if text.isascii() and "\r" not in text:
        sizes = [1] * len(text)
    else:
        sizes = [len(cluster.encode()) for cluster in _GRAPHEME.findall(text)]
    ends = list(accumulate(sizes, initial=ref.start))[1:]
    return ends if seen == ref else ends[:-1]


def largest(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number found that fits, up to `limit`, where 0 does: by doubling, then halving."""
    done, step, growing = 0, 1, True
    while done < limit and step:
        step = min(step, limit - done)
        if fits(done + step):
            done += step
        else:
            growing = False
        step = step * 2 if growing else step // 2
    return done
