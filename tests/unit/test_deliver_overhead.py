"""Framing and labels stay below a quarter of a 1,024-token bundle of chat turns (delivery.md, "Envelope")."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.deliver.deliver import deliver
from planner.tokens import ScriptCounter
from planner.types import Document
from tests.delivery_checks import check
from tests.memory_shelf import MemoryShelf, conversation

COUNTER = ScriptCounter()
BUDGET = 1_024
QUARTER = 0.25


def share(shelf: MemoryShelf, documents: list[Document], rng: random.Random) -> float:
    """Deliver the turns of conversations in any order; return the share that is not theirs."""
    places = [(document, i) for document in documents for i in range(document.length)]
    rng.shuffle(places)
    hits = [shelf.hit(rank, document, i) for rank, (document, i) in enumerate(places[:100], start=1)]
    delivery = deliver(hits, shelf, budget=BUDGET, counter=COUNTER)
    check(delivery, shelf, hits, COUNTER)
    assert delivery.skipped, "there is more than fits"
    return 1 - sum(delivery.sources.values()) / delivery.used


def turn(rng: random.Random) -> str:
    """Return a turn of 36 tokens."""
    said = ""
    while COUNTER.count(said) < 36:
        said += rng.choice(("we", "sailed", "around", "the", "harbour", "wall", "yesterday", "evening")) + " "
    return said.strip()


@pytest.mark.parametrize("sessions", [1, 2, 3])
@pytest.mark.parametrize("speakers", [("user", "assistant"), ("Caroline", "Melanie", "Tim")])
def test_generated_turns_leave_three_quarters_to_text(sessions: int, speakers: tuple[str, ...]) -> None:
    rng = random.Random(sessions)
    shelf = MemoryShelf()
    documents = []
    for session in range(sessions):
        at = datetime(2024, 5, 1 + session, 9, 30, tzinfo=UTC)
        turns = [(turn(rng), speakers[i % len(speakers)], at) for i in range(60 // sessions)]
        document, texts = conversation(f"chats/session-{session}", turns)
        documents.append(shelf.put(document, texts))
    assert share(shelf, documents, rng) < QUARTER


def test_a_time_for_every_turn_fits_in_too() -> None:
    rng = random.Random(7)
    at = datetime(2024, 5, 1, 9, 30, tzinfo=UTC)
    turns = [(turn(rng), ("user", "assistant")[i % 2], at + timedelta(minutes=i)) for i in range(300)]
    shelf = MemoryShelf()
    document, texts = conversation("chats/session-1", turns)
    assert share(shelf, [shelf.put(document, texts)], rng) < QUARTER


@pytest.mark.corpus
def test_turns_of_real_conversations_leave_three_quarters_to_text(
    shared_corpus: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    scopes = list(_sessions(shared_corpus("locomo-dev")))
    shares = {sessions: list(_shares(scopes, sessions)) for sessions in (2, 3, 5, 10)}
    means = {sessions: sum(found) / len(found) for sessions, found in shares.items()}
    with capsys.disabled():
        told = ", ".join(f"{sessions}: {mean:.1%}" for sessions, mean in means.items())
        sys.stdout.write(
            f"\nframing and labels in {BUDGET} tokens, by sessions that the turns are of: {told}\n"
        )
    assert all(means[sessions] < QUARTER for sessions in (2, 3))


def _shares(scopes: list[list[dict[str, Any]]], sessions: int) -> Iterator[float]:
    rng = random.Random(sessions)
    for scope in scopes:
        told = [source for source in scope if len(source["messages"]) > 15]
        for _ in range(20):
            shelf = MemoryShelf()
            documents = []
            for source in rng.sample(told, sessions):
                at = datetime.strptime(source["time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
                turns = [(message["text"], message["speaker"], at) for message in source["messages"]]
                document, texts = conversation(source["source_id"], turns, title=source["title"])
                documents.append(shelf.put(document, texts))
            yield share(shelf, documents, rng)


def _sessions(folder: Path) -> Iterator[list[dict[str, Any]]]:
    scopes: dict[str, list[dict[str, Any]]] = {}
    with (folder / "sources.jsonl").open(encoding="utf-8") as file:
        for line in file:
            source = json.loads(line)
            scopes.setdefault(source["scope"], []).append(source)
    yield from scopes.values()
