"""The bundles of each unit, byte for byte those on file."""

from __future__ import annotations

import json

import pytest

from planner.hashing import delivery_hash
from planner.tokens import ScriptCounter
from tests.bundle_parser import parse
from tests.delivery_checks import check
from tests.golden.deliveries import CASES, HASHES, PLAN_HASH, delivery, path, shelf


@pytest.mark.parametrize("name", CASES)
def test_a_bundle_is_the_one_on_file(name: str) -> None:
    made = delivery(name)
    assert made.text.encode() == path(name).read_bytes()
    assert made.delivery_hash == json.loads(HASHES.read_text(encoding="utf-8"))[name]
    held, hits = shelf()
    check(made, held, hits, ScriptCounter())


def test_the_bundles_on_file_show_what_a_bundle_may_hold() -> None:
    envelopes = [
        envelope for name in CASES for envelope in parse(path(name).read_text(encoding="utf-8")).envelopes
    ]
    units = {unit for envelope in envelopes for unit in envelope.units.values()}
    assert units == {"chunk", "window", "record"}
    assert any(envelope.cut_before for envelope in envelopes)
    assert any(envelope.cut_after for envelope in envelopes)
    assert any(not envelope.ids for envelope in envelopes)
    assert any(len(envelope.ids) > 1 for envelope in envelopes)
    assert {True, False} == {envelope.erased for envelope in envelopes}


def test_a_delivery_hash_is_of_the_text_and_of_what_decided_it() -> None:
    made = delivery("capped")
    assert made.delivery_hash == delivery_hash(
        made.text,
        framing_version="v1",
        unit="chunk",
        counter="utf8-script-v1",
        budget=500,
        neighbours=1,
        on_misfit="skip",
        max_frac=0.1,
        plan_hash=PLAN_HASH,
    )
