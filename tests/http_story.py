"""A conversation with the service in which every route is asked once: the examples of /openapi.json.

`python -m tests.http_story` writes them anew into the package; a test asks again and compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import planner.surfaces.http
from planner import Planner
from tests.http_service import client

FILE = Path(planner.surfaces.http.__file__).parent / "examples.json"

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)

QUESTION = "When does the storm gate close?"

STORY: tuple[tuple[str, str, str, dict[str, Any] | None], ...] = (
    (
        "ingest",
        "POST",
        "/v1/scopes/notes/sources",
        {
            "id": "harbour/gate.md",
            "text": "# Gate\n\nThe storm gate closes at a forecast of 2.9 m.\n\nIt opens six hours later.\n",
            "trust": "internal",
            "attributes": {"team": "harbour"},
        },
    ),
    (
        "append",
        "POST",
        "/v1/scopes/notes/sources/watch/append",
        {"messages": [{"content": "Is the gate closed?", "role": "user", "time": "2026-01-31T11:58:00Z"}]},
    ),
    ("list_sources", "GET", "/v1/scopes/notes/sources?limit=1", None),
    ("read_source", "GET", "/v1/scopes/notes/sources/harbour/gate.md", None),
    ("make_plan", "POST", "/v1/plans", {"scope": "notes", "text": QUESTION, "budget_tokens": 60}),
    ("read_plan", "GET", "/v1/plans/{plan}?include=rejected", None),
    ("list_plans", "GET", "/v1/plans?scope=notes&text=storm", None),
    ("why", "GET", "/v1/plans/{plan}/why?what=opens six hours later", None),
    ("replay", "POST", "/v1/plans/{plan}/replay", None),
    ("replan", "POST", "/v1/plans/{plan}/replan", {"keep": False}),
    ("deliver", "POST", "/v1/plans/{plan}/deliveries", {"unit": "window", "budget_tokens": 400}),
    (
        "verify_citation",
        "POST",
        "/v1/citations/verify",
        {"plan": "{plan}", "quote": "a forecast of 2.9 m", "evidence": "E1"},
    ),
    (
        "context",
        "POST",
        "/v1/context",
        {"scope": "notes", "text": QUESTION, "budget_tokens": 400, "unit": "auto"},
    ),
    ("diff", "GET", "/v1/plans/{plan}/diff/{other}", None),
    ("erase", "DELETE", "/v1/scopes/notes/sources/watch", None),
    ("livez", "GET", "/livez", None),
    ("readyz", "GET", "/readyz", None),
)


def told(http: TestClient) -> dict[str, dict[str, Any]]:
    """Have the conversation; return by operation what was asked and what was answered."""
    found: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    for name, method, path, body in STORY:
        asked = json.loads(_filled(json.dumps(body), places)) if body is not None else None
        answer = http.request(method, _filled(path, places), **({"json": asked} if asked is not None else {}))
        assert answer.status_code == 200, (name, answer.text)
        said = answer.json()
        found[name] = {**({"request": asked} if asked is not None else {}), "answer": said}
        if name in ("make_plan", "context"):
            places["plan" if name == "make_plan" else "other"] = said["plan"]
    return found


def settled(told: Mapping[str, Any]) -> Any:
    """Return a conversation without what differs each time: ids, in order of their coming, and durations."""
    text = json.dumps(told)
    ids = dict.fromkeys(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text))
    for number, identity in enumerate(ids, start=1):
        text = text.replace(identity, f"019c13d9-5800-7000-8000-{number:012}")
    return _without_durations(json.loads(text))


def _without_durations(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_durations(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: dict.fromkeys(item, 1.5)
        if name == "timings_ms"
        else 12.5
        if name == "took_ms"
        else _without_durations(item)
        for name, item in value.items()
    }


def _filled(text: str, places: Mapping[str, str]) -> str:
    return re.sub(r"\{(plan|other)\}", lambda found: places[found[1]], text)


def record(url: str) -> dict[str, dict[str, Any]]:
    """Have the conversation on an empty database; return it settled."""
    with Planner.connect(url, clock=lambda: NOW, actor="http") as opened, client(opened) as http:
        made: dict[str, dict[str, Any]] = settled(told(http))
    return made


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    from planner.embedded import EmbeddedServer
    from planner.store.upgrade import migrate

    with TemporaryDirectory() as folder:
        with EmbeddedServer(Path(folder), durable=False, idle_seconds=1) as server:
            migrate(server.url)
            text = json.dumps(record(server.url), indent=1, ensure_ascii=False)
        EmbeddedServer(Path(folder)).stop()
    FILE.write_text(text + "\n", encoding="utf-8")
