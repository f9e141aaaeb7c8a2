"""The pure core on the golden inputs: what the tests, the regeneration and other interpreters run.

As a program it reads the golden file's path and a seed, shuffles each pool and prints the results.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from planner.hashing import plan_bytes, plan_hash, pool_bytes, pool_hash
from planner.selection.budget import resolve_budget
from planner.selection.select import select
from planner.types import Candidate, SelectionPolicy

GOLDEN = Path(__file__).with_name("golden.json")


def results(case: dict[str, Any], seed: int | None = None) -> dict[str, str]:
    """Return the canonical bytes of plan and pool, as hex, and their hashes."""
    pool = [
        Candidate(**{**fields, "text_hash": bytes.fromhex(fields["text_hash"])})
        for fields in case["candidates"]
    ]
    if seed is not None:
        random.Random(seed).shuffle(pool)
    policy = SelectionPolicy(**case["policy"])
    budget = resolve_budget(**case["budget"])
    selection = select(pool, policy, budget, **case["counts"])
    models = {"plan_model": policy.plan_model, "score_model": case["score_model"]}
    return {
        "plan_bytes": plan_bytes(selection, **models).hex(),
        "plan_hash": plan_hash(selection, **models),
        "pool_bytes": pool_bytes(selection, **models).hex(),
        "pool_hash": pool_hash(selection, **models),
    }


def read_cases(path: Path = GOLDEN) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return cases


if __name__ == "__main__":
    found = {case["name"]: results(case, int(sys.argv[2])) for case in read_cases(Path(sys.argv[1]))}
    sys.stdout.write(json.dumps(found))
