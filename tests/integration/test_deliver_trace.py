"""What a delivery leaves behind: its row, what `why` tells of it, and how many statements it takes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from planner import EvidencePlan, Planner, Settings
from planner.errors import UnknownPlan
from planner.ingest import scope_id
from tests.integration.articles import plan_of_two
from tests.integration.graph import Connection, ask, circle_embedder, fan


@pytest.fixture
def made(planner: Planner, scope: str) -> EvidencePlan:
    return plan_of_two(planner, scope)


def rows(conn: Connection, scope: str) -> list[str]:
    found = conn.execute(
        "SELECT to_jsonb(d)::text FROM planner.delivery d WHERE d.scope_id = %s ORDER BY d.delivery_id",
        (scope_id(scope),),
    )
    return [row[0] for row in found]


def test_what_was_delivered_is_kept_without_a_word_of_it(
    planner: Planner, conn: Connection, scope: str
) -> None:
    turns = [
        {
            "speaker": "Xanthippe",
            "role": "housekeeper",
            "content": f"Zebras number {i} at {i}.",
            "id": f"id-{i}",
        }
        for i in range(5)
    ]
    planner.ingest_conversation(
        scope, "talk", turns, title="Quagga", uri="gnu://okapi", attributes={"a": "Dugong"}
    )
    plan = ask(planner, scope, k=1, hops=0)
    made = [planner.deliver(plan, "window"), planner.deliver(plan, "record", budget_tokens=110)]
    for word in ("Xanthippe", "housekeeper", "Zebras", "Quagga"):
        assert word in made[0].text
    kept = rows(conn, scope)
    assert len(kept) == 2
    for word in ("Xanthippe", "housekeeper", "Zebras", "Quagga", "okapi", "Dugong", "id-0"):
        assert word not in "".join(kept)
    told = planner.deliveries(plan.ref)
    for delivery, record in zip(made, told, strict=True):
        data, again_ = delivery.to_dict(text=False), record.to_dict()
        for item in data["items"]:
            del item["speaker"]
        shared = data.keys() & again_.keys()
        assert shared == data.keys() - {"plan", "plan_hash", "counter_bound", "sources"}
        assert {key: data[key] for key in shared} == {key: again_[key] for key in shared}
        assert set(record.timings) == {"plan", "shelf", "deliver"}
    assert [len(record.cuts) for record in told] == [0, 1]
    planner.prune_trace(planner.engine.clock(), scope)
    assert rows(conn, scope) == []


def test_without_a_trace_nothing_is_kept(planner: Planner, conn: Connection, scope: str) -> None:
    planner.ingest_text(scope, "a.md", "One at 10.")
    settings = Settings(max_frac_per_source=1.0, trace="off")
    silent = Planner(replace(planner.engine, settings=settings))
    plan = ask(silent, scope)
    delivery = silent.deliver(plan)
    assert (delivery.delivery_id, len(delivery.items), rows(conn, scope)) == (None, 1, [])
    with pytest.raises(UnknownPlan):
        silent.deliver(plan.ref)


class Counting(psycopg.Cursor[Any]):
    sent = 0

    def execute(self, query: Any, *args: Any, **options: Any) -> Any:
        type(self).sent += 1
        return super().execute(query, *args, **options)


def test_a_delivery_is_a_constant_number_of_statements(
    planner: Planner, shared_database_url: str, scope: str
) -> None:
    fan(*[i / 2 for i in range(200)]).into(planner, scope)
    wide = Planner(replace(planner.engine, settings=Settings(max_frac_per_source=1.0, k=900)))
    plans = [ask(wide, scope, k=k, hops=0, budget_tokens=50_000) for k in (1, 60, 200)]
    kwargs = {"autocommit": True, "cursor_factory": Counting}
    with ConnectionPool[Any](shared_database_url, min_size=1, max_size=1, kwargs=kwargs, open=True) as pool:
        counting = Planner.from_pool(pool, settings=planner.engine.settings, embedder=circle_embedder())
        for unit in ("chunk", "window", "auto"):
            sent = []
            for plan in plans:
                before = Counting.sent
                delivery = counting.deliver(plan.ref, unit)  # type: ignore[arg-type]
                assert len(delivery.items) == len(plan.spans)
                sent.append(Counting.sent - before)
            assert sent[0] <= sent[1] <= sent[0] + 1, unit  # texts are read by the 64
            assert sent[2] <= sent[0] + 4, unit


def test_why_tells_what_was_selected_and_not_delivered(
    planner: Planner, scope: str, made: EvidencePlan
) -> None:
    last = made.spans[1].verdict.candidate.ref
    assert planner.why(made.ref, str(last)).stages == {"selected": 1}
    small = planner.deliver(made, "chunk", budget_tokens=200)
    assert [skip.evidence for skip in small.skipped] == ["E2"]
    told = planner.why(made.ref, str(last))
    assert told.stages == {"not_delivered": 1}
    assert f"Delivery {small.delivery_id} (unit chunk, 200 tokens) left it out" in told.sentence
    assert "did not fit into what was left of the budget" in told.sentence
    (answer,) = told.to_dict()["answers"]
    assert (answer["evidence"], answer["deliveries"]) == (
        "E2",
        [{"delivery": small.delivery_id, "unit": "chunk", "budget": 200, "skipped": "over_budget"}],
    )
    assert "has it, as a chunk" in planner.why(made.ref, str(made.spans[0].verdict.candidate.ref)).sentence
    large = planner.deliver(made, "window", budget_tokens=4_000)
    told = planner.why(made.ref, str(last))
    assert told.stages == {"selected": 1}
    assert f"Delivery {large.delivery_id} (unit window, 4000 tokens) has it, as a window." in told.sentence
    capped = planner.deliver(made, "record", budget_tokens=4_000, max_frac=0.01, on_misfit="cut")
    assert capped.cuts
    assert json.loads(json.dumps(told.to_dict()))
