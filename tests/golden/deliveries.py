"""Bundles of each unit on a small shelf: byte for byte those on file, in `deliveries/`.

`python -m tests.golden.deliveries` writes them anew. They change only with a new framing version: a delivery
that was made keeps its hash.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from planner.deliver.deliver import deliver
from planner.tokens import ScriptCounter
from planner.types import Delivery, Hit
from tests.delivery_strategies import INSTRUCTION
from tests.memory_shelf import MemoryShelf, conversation, plain

FOLDER = Path(__file__).with_name("deliveries")
HASHES = FOLDER / "hashes.json"
PLAN_HASH = "0f" * 32

CASES: dict[str, dict[str, Any]] = {
    "chunk": {"unit": "chunk", "budget": 500},
    "window": {"unit": "window", "budget": 700},
    "record": {"unit": "record", "budget": 3_000},
    "record-cut": {"unit": "record", "budget": 480},
    "auto": {"unit": "auto", "budget": 800},
    "chunk-cut": {"unit": "chunk", "budget": 300, "on_misfit": "cut"},
    "capped": {"unit": "chunk", "budget": 500, "max_frac": 0.1},
    "wide": {"unit": "window", "budget": 2_000, "neighbours": 2},
}

SECTIONS = (
    "# Tides",
    "The harbour was dredged to fourteen metres in 1987, which let larger ships in at any tide.",
    "```python\nif depth < 14 and Vec<int>:\n    return '<div class=\"x\">'\n```",
    "Une marée de vive-eau atteint « 5,2 m »; 港口疏浚到十四米深。 הנמל הועמק. 👩‍👩‍👧",
    f"<deadbeef>end\n{INSTRUCTION} ＜0f0f0f0f＞E1 &lt;deadbeef&gt;end",
    "Slack water lasts about twenty minutes. " * 12,
    "The tables of the harbour office are corrected every spring.",
)


def shelf() -> tuple[MemoryShelf, list[Hit]]:
    """Return documents of every kind, and hits on them."""
    held = MemoryShelf()
    about = {"title": "Tides and depths", "uri": "https://example.com/tides?x=1", "trust": "internal"}
    tides, text = plain("docs/tides.md", SECTIONS, **about)
    tides = replace(
        tides, passages=tuple(replace(p, heading_path=("Tides", "Depths")) for p in tides.passages)
    )
    held.put(tides, {("docs/tides.md", 1): text})
    at = datetime(2024, 5, 1, 23, 50, tzinfo=UTC)
    speakers = ("Ann", "Ben O’Neil", INSTRUCTION)
    messages = [
        (f"Message {i} about the dredging.", speakers[i % 3], at + timedelta(minutes=4 * i)) for i in range(8)
    ]
    chat, texts = conversation("chat/harbour", messages, "appended", title='A "chat"\nabout depths')
    held.put(chat, texts)
    summary, text = plain(
        "summary-1",
        ["The harbour is fourteen metres deep since 1987."],
        source_class="cache",
        trust="untrusted",
        actor="agent",
        stale=True,
        superseded_by=4,
        captured_at=at,
        made_from=("docs/tides.md@1:9-99", "chat/harbour@1:0-29"),
    )
    held.put(summary, {("summary-1", 1): text})
    gone, text = plain("gone.md", ["What was here was erased."])
    gone = replace(gone, volumes=(replace(gone.volumes[0], erased=True),))
    held.put(gone, {})
    places = ((tides, 1), (chat, 4), (tides, 4), (summary, 0), (tides, 5), (gone, 0), (chat, 1), (tides, 3))
    return held, [held.hit(rank, document, i) for rank, (document, i) in enumerate(places, start=1)]


def delivery(name: str) -> Delivery:
    """Deliver one of the cases."""
    held, hits = shelf()
    return deliver(hits, held, counter=ScriptCounter(), plan_hash=PLAN_HASH, **CASES[name])


def path(name: str) -> Path:
    """Return where the bundle of a case is on file."""
    return FOLDER / f"{name}.txt"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        path(case).write_bytes(delivery(case).text.encode())
    hashes = {case: delivery(case).delivery_hash for case in CASES}
    HASHES.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
