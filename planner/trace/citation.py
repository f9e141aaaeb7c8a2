"""Whether a quote is in the evidence that it cites: exactly, after Unicode NFC and folding of white space.

White space is what `str.isspace` takes for it; a run of it counts as one space, and none at a quote's ends.
The window around a span proves nothing: a quote that goes beyond the span is not in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, NamedTuple
from unicodedata import combining, is_normalized, normalize

from planner.errors import RequestError
from planner.types import EvidencePlan, PlannedSpan, PlanRef, SpanRef, evidence_id, ranked

CitationVerdict = Literal["supported", "not_in_span", "cache_class", "unknown_evidence", "erased"]
Range = tuple[int, int]

_RUN = re.compile(r"\s+|\S+")


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote held against the evidence that it cites, and the verdict as a sentence.

    `ref` is the evidence's span, None where the plan selected none of this name. `found` are the bytes of the
    first place in it that says the quote, None unless supported.
    """

    plan: PlanRef
    evidence: str
    quote: str
    verdict: CitationVerdict
    sentence: str
    ref: SpanRef | None = None
    found: SpanRef | None = None

    @property
    def supported(self) -> bool:
        """Whether the quote is in the evidence."""
        return self.verdict == "supported"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        return {
            "plan": str(self.plan),
            "evidence": self.evidence,
            "quote": self.quote,
            "verdict": self.verdict,
            "supported": self.supported,
            "sentence": self.sentence,
            "ref": str(self.ref) if self.ref else None,
            "found": str(self.found) if self.found else None,
        }


def folded(quote: str) -> str:
    """Return a quote in NFC with its white space folded. Raises RequestError where nothing is left."""
    if not isinstance(quote, str) or not quote.strip():
        raise RequestError(
            f"quote = {quote!r}: quote a text that is more than white space, to be looked for", field="quote"
        )
    return _folded(quote)


def cited(plan: EvidencePlan, evidence: str) -> PlannedSpan | None:
    """Return the selected span that is cited as `E<rank>` or `source@tx:start-end`; None: there is none."""
    best_first = ranked(plan)
    names = {str(span.verdict.candidate.ref): span for span in best_first}
    names |= {evidence_id(rank): span for rank, span in enumerate(best_first, start=1)}
    return names.get(evidence)


def judged(
    plan: EvidencePlan, evidence: str, quote: str, span: PlannedSpan | None, text: str | None
) -> Citation:
    """Return the verdict on a quote of `span`, whose text is None where it is erased.

    Raises RequestError for a quote of white space.
    """
    folded(quote)
    if span is None:
        names = [evidence_id(rank) for rank in range(1, len(plan.spans) + 1)]
        has = f"{names[0]} to {names[-1]}" if names[1:] else names[0] if names else "no evidence"
        said = f"The plan has no evidence {evidence!r}; it has {has}."
        return Citation(plan.ref, evidence, quote, "unknown_evidence", said)
    ref = span.verdict.candidate.ref
    name = evidence if evidence == str(ref) else f"{evidence} ({ref})"

    def verdict(word: CitationVerdict, said: str, found: SpanRef | None = None) -> Citation:
        return Citation(plan.ref, evidence, quote, word, said, ref, found)

    if span.verdict.candidate.source_class == "cache":
        return verdict(
            "cache_class", f"{name} is derived text, which proves nothing: cite what it is made from."
        )
    if text is None:
        return verdict("erased", f"The text of {name} is gone: its source was erased, or the version pruned.")
    at = find(text, quote)
    if at is None:
        return verdict("not_in_span", f"The quote is not in {name}.")
    found = ref._replace(start=ref.start + at[0], end=ref.start + at[1])
    return verdict("supported", f"The quote is in {name}, at {found}.", found)


def find(text: str, quote: str) -> Range | None:
    """Return the bytes of the UTF-8 of `text` at which it first says `quote`, None where it does not.

    The bytes say just the quote: where they would hold part of what NFC joins or reorders, such as a letter
    without its accent, no range of the text does. Raises RequestError for a quote of white space.
    """
    needle = folded(quote)
    if needle not in _folded(text):
        return None
    pieces = list(_pieces(text))
    starts = list(accumulate((len(piece.folded) for piece in pieces), initial=0))
    haystack = "".join(piece.folded for piece in pieces)

    def place(at: int, piece: int) -> int | None:
        return pieces[piece].byte(at - starts[piece])

    at = haystack.find(needle)
    while at >= 0:
        end = at + len(needle)
        start_byte = place(at, bisect_right(starts, at) - 1)
        end_byte = place(end, bisect_left(starts, end) - 1)
        if start_byte is not None and end_byte is not None:
            return start_byte, end_byte
        at = haystack.find(needle, at + 1)
    return None


class _Piece(NamedTuple):
    """A piece of normalised text and its bytes in the original; what NFC changed is cut at its ends alone."""

    folded: str
    start: int
    end: int
    is_same: bool

    def byte(self, at: int) -> int | None:
        """Return where its character `at` begins in the original, None where that cannot be told."""
        if at in (0, len(self.folded)):
            return self.end if at else self.start
        return self.start + len(self.folded[:at].encode()) if self.is_same else None


def _folded(text: str) -> str:
    return " ".join(normalize("NFC", text).split())


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield runs of white space, which takes no marks, and between them words in NFC, or segments."""
    at = 0
    for run in _RUN.findall(text):
        for piece in (run,) if run.isspace() or is_normalized("NFC", run) else _segments(run):
            normal = " " if run.isspace() else normalize("NFC", piece)
            end = at + len(piece.encode())
            yield _Piece(normal, at, end, normal == piece)
            at = end


def _segments(text: str) -> Iterator[str]:
    """Yield `text` in the smallest pieces whose NFC, one after another, is the NFC of the whole."""
    start = 0
    for at in range(1, len(text)):
        if not _belongs(text[start:at], text[at]):
            yield text[start:at]
            start = at
    yield text[start:]


def _belongs(segment: str, char: str) -> bool:
    """Say whether NFC may reorder a character with the segment before it, or join the two (UAX #15)."""
    if char.isascii():
        return False
    is_mark = combining(normalize("NFD", char)[0]) > 0
    return is_mark or normalize("NFC", segment + char) != normalize("NFC", segment) + normalize("NFC", char)
