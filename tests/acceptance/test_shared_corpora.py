"""Every question of the shared corpora gets a plan within its budget, through the public API alone.

As a script, over all questions: `python tests/acceptance/test_shared_corpora.py URL FOLDER…`, on a migrated
database, with the folders of corpora.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planner import InsufficientEvidence, Planner

BUDGETS = (2_048, 512)
"""Asked for in turn: one that holds the evidence, and one that has to choose."""

SOME_QUESTIONS = 60
ALL_QUESTIONS = bool(os.environ.get("PLANNER_TEST_ALL_QUESTIONS"))


@dataclass
class Report:
    """What came of the questions of one corpus; latencies are those of `plan()`, in milliseconds."""

    corpus: str
    latencies: list[float] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    over_budget: list[str] = field(default_factory=list)
    without_text: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Say how many were planned, and how fast."""
        cuts = statistics.quantiles(self.latencies, n=100, method="inclusive")
        p50, p95, p99 = (f"{cuts[at - 1]:.1f}" for at in (50, 95, 99))
        return (
            f"{self.corpus}: {len(self.latencies)} questions, {len(self.unplanned)} not planned, "
            f"{len(self.over_budget)} over budget; plan() p50 {p50}, p95 {p95}, p99 {p99} ms"
        )


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file)


def load(planner: Planner, folder: Path) -> None:
    """Ingest every source of a corpus, conversations with the time of their session."""
    for source in lines(folder / "sources.jsonl"):
        scope, source_id, title = source["scope"], source["source_id"], source["title"]
        if "messages" in source:
            told = source.get("time")
            at = datetime.strptime(told, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC) if told else None
            messages = [{**message, "time": at} for message in source["messages"]]
            planner.ingest_conversation(scope, source_id, messages, title=title)
        else:
            planner.ingest_text(
                scope, source_id, source["text"], media_type=source["media_type"], title=title
            )


def ask(planner: Planner, folder: Path, limit: int | None) -> Report:
    """Plan every question, or the first `limit`, and keep what must not happen."""
    report = Report(folder.name)
    for number, question in enumerate(lines(folder / "questions.jsonl")):
        if number == limit:
            break
        name, budget = question["question_id"], BUDGETS[number % len(BUDGETS)]
        started = time.perf_counter()
        try:
            plan = planner.plan(question["scope"], question["text"], budget_tokens=budget)
        except InsufficientEvidence:
            report.unplanned.append(name)
            continue
        report.latencies.append((time.perf_counter() - started) * 1_000)
        counted = sum(span.verdict.candidate.tokens for span in plan.spans)
        if not counted == plan.used <= plan.budget.budget <= budget:
            report.over_budget.append(name)
        if not plan.spans or not all(span.text for span in plan.spans):
            report.without_text.append(name)
    return report


@pytest.mark.corpus
@pytest.mark.parametrize("corpus", ["locomo-dev", "chroma-dev"])
def test_every_question_of_a_shared_corpus_is_planned_within_its_budget(
    database_url: str,
    shared_corpus: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
    corpus: str,
) -> None:
    folder = shared_corpus(corpus)
    with Planner.connect(database_url) as planner:
        load(planner, folder)
        report = ask(planner, folder, None if ALL_QUESTIONS else SOME_QUESTIONS)
    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.latencies
    assert (report.unplanned, report.over_budget, report.without_text) == ([], [], [])


def main(url: str, *folders: str) -> int:
    """Load and ask about each corpus; the exit code says whether a plan was missing or over budget."""
    failed = False
    with Planner.connect(url) as planner:
        for folder in map(Path, folders):
            load(planner, folder)
            report = ask(planner, folder, None)
            sys.stdout.write(f"{report}\n")
            failed = failed or bool(report.unplanned or report.over_budget or report.without_text)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
