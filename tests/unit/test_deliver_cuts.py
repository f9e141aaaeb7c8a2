"""A unit that does not fit is cut where it hurts least, says so, and is never read whole."""

from __future__ import annotations

import pytest
import regex

from planner.deliver.deliver import deliver
from planner.errors import InsufficientEvidence
from planner.tokens import ByteCounter, CallableCounter, ScriptCounter
from planner.types import OnMisfit
from tests.delivery_checks import check
from tests.memory_shelf import MemoryShelf, conversation, plain

COUNTER = ScriptCounter()
SENTENCE = "The harbour was dredged to fourteen metres. "
SCRIPTS = {
    "cjk": "港口疏浚到十四米深，船只可以在退潮时进出。",
    "emoji": "👩‍👩‍👧🇨🇭👍🏽❤️‍🔥",
    "rtl": "הנמל הועמק לארבעה עשר מטרים. ",
    "marks": "n\u0303e\u0301\u0323\u0308ก็नि",
    "mixed": "Port 港口 الميناء 👩‍👩‍👧 é. ",
}


def shelved(parts: list[str], between: str = "\n\n") -> tuple[MemoryShelf, bytes]:
    document, text = plain("a.md", parts, between)
    shelf = MemoryShelf()
    shelf.put(document, {("a.md", 1): text})
    return shelf, text


def test_a_record_is_cut_to_the_passages_around_the_hit() -> None:
    parts = [f"{i:03d} {SENTENCE}" for i in range(200)]
    shelf, text = shelved(parts)
    hits = [shelf.hit(1, shelf.held["a.md"], 100)]
    delivery = deliver(hits, shelf, budget=400, counter=COUNTER, unit="record")
    [envelope] = check(delivery, shelf, hits, COUNTER)
    [cut] = delivery.cuts
    assert (cut.evidence, cut.unit, cut.ref) == ("E1", "record", delivery.items[0].ref)
    assert envelope.body.startswith(parts[86][:3]) or envelope.body[:3].isdigit()
    assert envelope.body.endswith(SENTENCE)
    assert envelope.cut_before == cut.ref.start
    assert envelope.cut_after == len(text) - cut.ref.end
    assert cut.bytes_left_out == envelope.cut_before + envelope.cut_after
    assert delivery.used > 400 - COUNTER.count(parts[0]) - 2
    first, last = int(envelope.body[:3]), int(envelope.body.rsplit("\n\n", 1)[1][:3])
    assert abs((100 - first) - (last - 100)) <= 1


@pytest.mark.parametrize("position", [0, 199])
def test_a_run_that_meets_an_end_of_its_record_grows_the_other_way(position: int) -> None:
    shelf, _ = shelved([f"{i:03d} {SENTENCE}" for i in range(200)])
    hits = [shelf.hit(1, shelf.held["a.md"], position)]
    delivery = deliver(hits, shelf, budget=400, counter=COUNTER, unit="record")
    [envelope] = check(delivery, shelf, hits, COUNTER)
    assert (envelope.cut_before == 0) == (position == 0)
    assert (envelope.cut_after == 0) == (position == 199)
    assert delivery.used > 380


def test_a_record_of_ten_megabytes_is_not_read_whole() -> None:
    shelf, text = shelved([f"{i:06d} {SENTENCE * 8}" for i in range(28_000)])
    assert len(text) > 10_000_000
    document = shelf.held["a.md"]
    for unit in ("chunk", "window", "record", "auto"):
        shelf.reads.clear()
        hits = [shelf.hit(1, document, 14_000)]
        delivery = deliver(hits, shelf, budget=2_048, counter=COUNTER, unit=unit)
        check(delivery, shelf, hits, COUNTER)
        assert shelf.bytes_read < 20_000
    assert shelf.bytes_read == sum(ref.end - ref.start for reads in shelf.reads for ref in reads)


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("counter", [ScriptCounter(), ByteCounter(), CallableCounter("c", "exact", len)])
def test_a_cut_inside_a_passage_parts_no_grapheme_cluster(
    script: str, counter: ScriptCounter | ByteCounter | CallableCounter
) -> None:
    parts = [SCRIPTS[script] * 20]
    shelf, _ = shelved(parts)
    hits = [shelf.hit(1, shelf.held["a.md"], 0)]
    whole = deliver(hits, shelf, budget=10_000, counter=counter).used
    clusters = regex.findall(r"\X", parts[0])
    seen = set()
    with pytest.raises(InsufficientEvidence) as refused:
        deliver(hits, shelf, budget=1, counter=counter, on_misfit="cut")
    least = refused.value.sufficient_budget or whole
    for budget in range(least, whole, max(1, (whole - least) // 25)):
        delivery = deliver(hits, shelf, budget=budget, counter=counter, on_misfit="cut")
        [envelope] = check(delivery, shelf, hits, counter)
        number = len(regex.findall(r"\X", envelope.body))
        assert "".join(clusters[:number]) == envelope.body
        assert envelope.cut_after == len("".join(clusters[number:]).encode())
        seen.add(number)
    assert len(seen) > 5


def test_as_much_as_fits_is_kept_of_a_cut_chunk() -> None:
    shelf, _ = shelved(["word " * 400])
    hits = [shelf.hit(1, shelf.held["a.md"], 0)]
    for budget in range(170, 300):
        delivery = deliver(hits, shelf, budget=budget, counter=ByteCounter(), on_misfit="cut")
        check(delivery, shelf, hits, ByteCounter())
        assert budget - delivery.used <= len("9")  # a digit more in what is said of the range


def test_a_counter_of_which_nothing_is_known_reads_no_more_than_it_may_count() -> None:
    shelf, text = shelved([f"{i:03d} {SENTENCE}" for i in range(2_000)])
    hits = [shelf.hit(1, shelf.held["a.md"], 1_000)]
    generous = CallableCounter("generous", "estimate", lambda counted: 7)
    delivery = deliver(hits, shelf, budget=10, counter=generous, unit="record")
    check(delivery, shelf, hits, generous)
    assert 1_000 < sum(item.ref.end - item.ref.start for item in delivery.items) < 11 * 256
    assert shelf.bytes_read < 10_000 < len(text)


def test_a_conversation_is_cut_between_its_messages() -> None:
    messages = [(f"{i:03d} {SENTENCE}", "Alice", None) for i in range(100)]
    seen = []
    for kept in ("one", "appended", "message"):
        document, texts = conversation("chat", messages, kept)
        shelf = MemoryShelf()
        shelf.put(document, texts)
        hits = [shelf.hit(1, document, 50)]
        delivery = deliver(hits, shelf, budget=400, counter=COUNTER, unit="record")
        envelopes = check(delivery, shelf, hits, COUNTER)
        assert all(envelope.body in {message[0] for message in messages} for envelope in envelopes)
        first, last = int(envelopes[0].body[:3]), int(envelopes[-1].body[:3])
        size = len(messages[0][0])
        assert (envelopes[0].cut_before, envelopes[-1].cut_after) == (first * size, (99 - last) * size)
        assert not any(envelope.cut_after for envelope in envelopes[:-1])
        seen.append((first, last))
    assert seen[0] == seen[1]


def test_what_is_left_out_ends_where_another_piece_begins() -> None:
    parts = [f"{i:03d} {SENTENCE * 9}" for i in range(100)]
    parts[60] = "Tiny."
    shelf, text = shelved(parts)
    document = shelf.held["a.md"]
    hits = [shelf.hit(1, document, 20), shelf.hit(2, document, 60)]
    delivery = deliver(hits, shelf, budget=420, counter=COUNTER, unit="record")
    first, second = check(delivery, shelf, hits, COUNTER)
    assert second.body == "Tiny."
    between = second.start - first.start - first.size
    assert (first.cut_before, first.cut_after) == (first.start, between)
    assert (second.cut_before, second.cut_after) == (between, len(text) - second.start - second.size)
    assert [cut.bytes_left_out for cut in delivery.cuts] == [len(text) - first.size, len(text) - second.size]


@pytest.mark.parametrize(
    ("unit", "on_misfit", "cuts"),
    [
        ("chunk", None, False),
        ("window", None, False),
        ("record", None, True),
        ("auto", None, False),
        ("record", "skip", False),
        ("chunk", "cut", True),
        ("window", "cut", True),
        ("auto", "cut", True),
    ],
)
def test_what_becomes_of_a_misfit(unit: str, on_misfit: OnMisfit | None, cuts: bool) -> None:
    shelf, _ = shelved(["short", SENTENCE * 40, SENTENCE * 40], "\n\n" + "-" * 20 + "\n\n")
    document = shelf.held["a.md"]
    hits = [shelf.hit(1, document, 2)]
    other, text = plain("b.md", ["short"])
    shelf.put(other, {("b.md", 1): text})
    hits.append(shelf.hit(2, other, 0))
    delivery = deliver(hits, shelf, budget=200, counter=COUNTER, unit=unit, on_misfit=on_misfit)
    check(delivery, shelf, hits, COUNTER)
    assert bool(delivery.cuts) == cuts
    assert [(skip.evidence, skip.reason) for skip in delivery.skipped][:1] == (
        [("E2", "over_budget")] if cuts else [("E1", "over_budget")]
    )
