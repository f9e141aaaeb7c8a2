"""The plans of the shipped corpus by the exact method, on whichever server: the same hashes everywhere.

`python -m tests.golden.plans` writes the expected hashes anew, from the embedded server. They change with the
corpus, with a parser's version, and with a new version of a score or plan model; with nothing else.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from planner import Planner
from planner.demo import corpus_folder, questions

PLANS = Path(__file__).with_name("plans.json")

Hashes = dict[str, dict[str, str | None]]


def hashes(planner: Planner, scope: str = "golden") -> Hashes:
    """Ingest the corpus into a new scope and ask each of its questions by v1 and by v2."""
    report = planner.ingest(scope, corpus_folder())
    assert not report.failures, report.failures
    found: Hashes = {}
    for model in ("v1", "v2"):
        models = {"score_model": model, "plan_model": model}
        asking = Planner(replace(planner.engine, settings=planner.engine.settings.model_copy(update=models)))
        for question in questions():
            plan = asking.plan(scope, question.text, budget_tokens=question.budget_tokens, method="exact")
            found[f"{question.question_id} {model}"] = {"plan": plan.plan_hash, "pool": plan.pool_hash}
    return found


def expected() -> Hashes:
    """Return the hashes on file."""
    read: Hashes = json.loads(PLANS.read_text(encoding="utf-8"))
    return read


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, Planner.embedded(folder) as embedded:
        PLANS.write_text(json.dumps(hashes(embedded), indent=1) + "\n", encoding="utf-8")
