"""What is measured, one formula a function; pure.

An evidence item is *hit* by spans when they cover at least half of its bytes; a message that is one span is
hit where that span is there. Ranks count from 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import normalize

import numpy as np
import regex

from planner.types import NO_TEXT_HASH, Candidate, SpanRef

Range = tuple[int, int]
Ranks = Sequence[int | None]

PERCENTILES = (50, 95, 99)

_FOLDED = regex.compile(r"[\p{P}\p{Z}\p{C}]+")
_UNSPACED = regex.compile(r" ?(\p{Lo}) ?")


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of labelled evidence: bytes of one source's canonical text."""

    source_id: str
    ranges: tuple[Range, ...]

    @property
    def length(self) -> int:
        """How many bytes it has."""
        return sum(end - start for start, end in self.ranges)


def covered(item: Item, spans: Iterable[SpanRef]) -> int:
    """Return how many bytes of an item the union of `spans` covers."""
    pieces = [
        (max(span.start, start), min(span.end, end))
        for span in spans
        if span.source_id == item.source_id
        for start, end in item.ranges
        if span.start < end and start < span.end
    ]
    return _union(pieces)


def is_hit(item: Item, spans: Iterable[SpanRef]) -> bool:
    """Tell whether `spans` cover at least half of an item's bytes."""
    return 2 * covered(item, spans) >= item.length


def hits(items: Sequence[Item], spans: Sequence[SpanRef]) -> int:
    """Count the items that are hit."""
    return sum(is_hit(item, spans) for item in items)


def found_at(items: Sequence[Item], ranked: Sequence[SpanRef]) -> list[int | None]:
    """Return for each item the rank, from 1, at which the spans so far hit it; None where all do not."""
    return [_found_at(item, ranked) for item in items]


def recall_at(ranks: Ranks, k: int) -> float:
    """Return recall@k = items hit by the first k spans / items (Manning et al. 2008, 8.4)."""
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks)


def reciprocal_rank(ranks: Ranks) -> float:
    """Return 1 / the first rank that hits an item, 0 where none does; its mean is MRR (Voorhees 1999)."""
    return 1 / min((rank for rank in ranks if rank is not None), default=math.inf)


def ndcg_at(ranks: Ranks, k: int) -> float:
    """Return nDCG@k = DCG / ideal DCG, where DCG = sum over ranks r <= k of gain(r) / log2(r + 1).

    gain(r) counts the items that become hit at rank r. The ideal order has the same gains, largest first, and
    items that were never hit at a rank each (Järvelin, Kekäläinen 2002).
    """
    found = [rank for rank in ranks if rank is not None]
    gains = {rank: found.count(rank) for rank in set(found)}
    ideal = sorted([*gains.values(), *[1] * (len(ranks) - len(found))], reverse=True)
    return _dcg(gains, k) / _dcg(dict(enumerate(ideal, start=1)), k)


def redundant_share(selected: Sequence[Candidate]) -> float:
    """Return the share of the selected bytes that others of them bring too; 0 where nothing is selected.

    1 - b / n, of n bytes in all and b without overlaps inside a source version and without repeated texts.
    """
    total = sum(span.end - span.start for span in selected)
    seen: set[bytes] = set()
    ranges: dict[tuple[str, int], list[Range]] = {}
    for span in selected:
        if span.text_hash in seen:
            continue
        if span.text_hash != NO_TEXT_HASH:
            seen.add(span.text_hash)
        ranges.setdefault((span.source_id, span.version_tx), []).append((span.start, span.end))
    return 1 - sum(map(_union, ranges.values())) / total if total else 0.0


@lru_cache(maxsize=8_192)
def normalised(text: str) -> str:
    """Return a text for comparison: NFKC, case folded, punctuation and white space one space.

    No space stays beside a letter that has no case, as Chinese and Japanese have: there it parts no words.
    """
    folded = normalize("NFKC", normalize("NFKC", text).casefold())
    return str(_UNSPACED.sub(r"\1", _FOLDED.sub(" ", folded))).strip()


def holds_answer(text: str, answers: Sequence[str]) -> bool | None:
    """Tell whether a text holds one of the answers, in whole words; None where there is none to look for."""
    wanted = [answer for answer in map(normalised, answers) if answer]
    return any(_is_in(answer, normalised(text)) for answer in wanted) if wanted else None


def mean(values: Iterable[float]) -> float:
    """Return the arithmetic mean, 0 for none."""
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else 0.0


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return p50, p95 and p99, interpolated linearly (numpy.percentile), in the unit of the values."""
    cuts = np.percentile(np.asarray(values, dtype=np.float64), PERCENTILES)
    return {f"p{cut}": round(float(value), 3) for cut, value in zip(PERCENTILES, cuts, strict=True)}


def _found_at(item: Item, ranked: Sequence[SpanRef]) -> int | None:
    touching: list[SpanRef] = []
    for rank, span in enumerate(ranked, start=1):
        if covered(item, (span,)):
            touching.append(span)
            if is_hit(item, touching):
                return rank
    return None


def _union(pieces: Iterable[Range]) -> int:
    """Return how many bytes some ranges cover together."""
    total, reached = 0, 0
    for start, end in sorted(pieces):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _dcg(gains: Mapping[int, int], k: int) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in gains.items() if rank <= k)


def _is_in(answer: str, text: str) -> bool:
    """Tell whether an answer is in a text and does not begin or end within a word of it."""
    before = "" if _is_unspaced(answer[0]) else r"(?<![^ \p{Lo}])"
    after = "" if _is_unspaced(answer[-1]) else r"(?![^ \p{Lo}])"
    return regex.search(before + regex.escape(answer) + after, text) is not None


def _is_unspaced(char: str) -> bool:
    return _UNSPACED.fullmatch(char) is not None
