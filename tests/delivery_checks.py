"""What holds of every delivery, whatever was delivered: the checks that all its tests share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from planner.deliver.escape import unescape
from planner.ports import TokenCounter
from planner.types import Delivery, Hit, Passage
from tests.bundle_parser import Envelope, parse
from tests.memory_shelf import MemoryShelf


def check(
    delivery: Delivery, shelf: MemoryShelf, hits: Sequence[Hit], counter: TokenCounter
) -> list[Envelope]:
    """Check a delivery against its shelf, and return its envelopes as the strict parser reads them."""
    assert counter.count(delivery.text) == delivery.used <= delivery.budget
    envelopes = parse(delivery.text).envelopes
    assert len(envelopes) == len(delivery.items)
    data = delivery.text.encode()
    for item, envelope in zip(delivery.items, envelopes, strict=True):
        text = data[item.start : item.end].decode()
        assert (envelope.body, envelope.erased) == (text, item.erased)
        assert (envelope.ids, envelope.start) == (item.evidence, item.ref.start)
        assert envelope.size == item.ref.end - item.ref.start
        assert (envelope.source, envelope.tx) == item.ref[:2] or "…" in envelope.source
        if item.erased:
            assert text == ""
        else:
            assert unescape(text).encode() == shelf.texts[item.ref[:2]][item.ref.start : item.ref.end]
    _no_byte_twice(delivery)
    _every_hit_once(delivery, hits)
    _shares_add_up(delivery, counter)
    return envelopes


def _no_byte_twice(delivery: Delivery) -> None:
    refs = sorted(item.ref for item in delivery.items)
    for before, after in pairwise(refs):
        assert before[:2] != after[:2] or before.end <= after.start, (before, after)


def _every_hit_once(delivery: Delivery, hits: Sequence[Hit]) -> None:
    shown = [name for item in delivery.items for name in item.evidence]
    skipped = [skip.evidence for skip in delivery.skipped]
    assert sorted(shown + skipped) == sorted(f"E{hit.rank}" for hit in hits)
    for item in delivery.items:
        for hit in hits:
            if f"E{hit.rank}" in item.evidence:
                assert item.ref[:2] == hit.ref[:2]
                assert item.ref.start <= hit.ref.start < item.ref.end


def _shares_add_up(delivery: Delivery, counter: TokenCounter) -> None:
    data = delivery.text.encode()
    shares: dict[str, int] = {}
    for item in delivery.items:
        tokens = counter.count(data[item.start : item.end].decode())
        shares[item.ref.source_id] = shares.get(item.ref.source_id, 0) + tokens
    assert dict(delivery.sources) == shares


def said(envelopes: Sequence[Envelope]) -> list[tuple[str | None, str | None, str]]:
    """Return the messages of a bundle as a reader sees them: speaker, time, text."""
    return [(envelope.name, envelope.time, envelope.body) for envelope in envelopes]


def texts(shelf: MemoryShelf, passages: Sequence[Passage]) -> list[str]:
    """Return the texts of passages."""
    return [shelf.texts[p.ref[:2]][p.ref.start : p.ref.end].decode() for p in passages]
