"""A caller may weigh the pool anew; what it returned is hashed, traced and replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from planner import Planner
from planner.errors import RescorerError
from planner.types import Candidate

TEXT = "# Zoo\n\nLions sleep all day.\n\nTigers swim in the pool.\n\nBears eat honey.\n"


@dataclass(frozen=True)
class ByWord:
    word: str
    name: str = "by-word"

    def score(self, question: str, candidates: Sequence[Candidate], texts: Sequence[str]) -> list[float]:
        return [1.0 if self.word in text else 0.001 for text in texts]


@dataclass(frozen=True)
class Broken:
    answer: Callable[[int], object]
    name: str = "broken"

    def score(self, question: str, candidates: Sequence[Candidate], texts: Sequence[str]) -> list[float]:
        return self.answer(len(texts))  # type: ignore[return-value]


@pytest.fixture
def planner(database_url: str) -> Iterator[Planner]:
    with Planner.connect(database_url) as planner:
        planner.ingest_text("zoo", "zoo.md", TEXT)
        yield planner


def test_the_rescored_order_is_selected_hashed_and_replayed(planner: Planner) -> None:
    plain = planner.plan("zoo", "Who swims?", plan_model="v2")
    made = planner.plan("zoo", "Who swims?", plan_model="v2", rescore=ByWord("honey"))
    assert made.spans[0].text == "Bears eat honey."
    assert made.score_model == "caller:by-word"
    assert made.plan_hash != plain.plan_hash
    assert planner.load(made.ref).to_dict()["spans"] == made.to_dict()["spans"]
    assert planner.replay(made.ref).plan_hash == made.plan_hash


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: [1.0],
        lambda n: [float("nan")] * n,
        lambda n: [-1.0] * n,
        lambda _: 1 / 0,
        lambda n: ["x"] * n,
    ],
    ids=["too few", "not a number", "negative", "raises", "text"],
)
def test_a_broken_rescorer_is_a_failed_plan(planner: Planner, answer: Callable[[int], object]) -> None:
    with pytest.raises(RescorerError) as raised:
        planner.plan("zoo", "Who swims?", rescore=Broken(answer))
    assert planner.load(str(raised.value.detail["plan"])).outcome == "failed"
