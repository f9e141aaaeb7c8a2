"""The examples of docs/async.md, as they stand there: one served by FastAPI, one called."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from planner import AsyncPlanner

PAGE = Path(__file__).parents[2] / "docs" / "async.md"


@pytest.fixture
def examples() -> list[dict[str, Any]]:
    """Give what each example defines."""
    found = []
    for text in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        names: dict[str, Any] = {"__name__": "example"}
        exec(compile(text, str(PAGE), "exec"), names)
        found.append(names)
    return found


def test_the_service_answers_with_evidence_and_with_problems(
    examples: list[dict[str, Any]], corpus_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_DATABASE_URL", corpus_url)
    with TestClient(examples[0]["app"]) as client:
        found = client.get("/evidence/cli", params={"question": "When does the storm gate close?"})
        assert found.status_code == 200
        assert "gate" in found.json()["text"]
        assert found.json()["plan"].startswith("cli:")
        refused = client.get("/evidence/nowhere", params={"question": "When?"})
        assert (refused.status_code, refused.json()["code"]) == (400, "not_found.scope")


def test_several_steps_are_one_call(examples: list[dict[str, Any]], corpus_url: str, planned: str) -> None:
    async def main() -> bool:
        async with await AsyncPlanner.connect(corpus_url) as planner:
            return bool(await examples[1]["is_reproducible"](planner, planned))

    assert asyncio.run(main())
