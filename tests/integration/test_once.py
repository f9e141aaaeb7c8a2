"""An idempotency key: what was written under it is not written again, whoever wrote in between."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from planner import Planner
from planner.errors import ConflictingInput, RequestError
from planner.ingest.media import IMPORT
from tests.integration.graph import Connection, rows_of

A, B = "The gate closes at 10.\n", "The gate closes at 20.\n"
TURN = {"content": "Is anybody there at 30"}


def current(planner: Planner, scope: str, source: str = "doc.md") -> int:
    return planner.source(scope, source).version_tx


def test_a_repeat_after_another_write_brings_nothing_back(planner: Planner, scope: str) -> None:
    first = planner.ingest_text(scope, "doc.md", A, idempotency_key="k1")
    planner.ingest_text(scope, "doc.md", B)
    again = planner.ingest_text(scope, "doc.md", A, idempotency_key="k1")
    assert (first.sources[0].status, first.sources[0].version_tx) == ("new", 1)
    assert (again.sources[0].status, again.sources[0].version_tx) == ("unchanged", 1)
    assert again.sources[0].spans == first.sources[0].spans
    assert current(planner, scope) == 2
    assert planner.ingest_text(scope, "doc.md", A).sources[0].version_tx == 3


def test_a_repeat_writes_no_row(planner: Planner, scope: str, conn: Connection) -> None:
    planner.ingest_text(scope, "doc.md", A, idempotency_key="k1")
    planner.append(scope, "talk", [TURN], idempotency_key="k2")
    before = rows_of(conn, scope)
    planner.ingest_text(scope, "doc.md", A, idempotency_key="k1")
    planner.append(scope, "talk", [TURN], idempotency_key="k2")
    assert rows_of(conn, scope) == before


def test_a_turn_without_an_id_is_appended_once_a_key(planner: Planner, scope: str) -> None:
    done = [
        planner.append(scope, "talk", [TURN], idempotency_key=key).sources[0].status
        for key in ("k1", "k1", "k2", "k2", "k1")
    ]
    assert done == ["new", "unchanged", "changed", "unchanged", "unchanged"]
    assert len(planner.source(scope, "talk").spans) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"text": B},
        {"title": "Another"},
        {"trust": "verified"},
        {"attributes": {"a": 1}},
    ],
)
def test_the_same_key_with_something_else_is_refused(
    planner: Planner, scope: str, other: dict[str, Any]
) -> None:
    planner.ingest_text(scope, "doc.md", A, idempotency_key="k1")
    with pytest.raises(ConflictingInput, match="idempotency key") as refused:
        planner.ingest_text(scope, "doc.md", **{"text": A, **other}, idempotency_key="k1")
    assert refused.value.detail["field"] == "idempotency_key"
    assert current(planner, scope) == 1


def test_a_key_is_its_source_s_and_its_scope_s(planner: Planner, scope: str) -> None:
    for name in (scope, f"{scope}-too"):
        for source in ("a.md", "b.md"):
            made = planner.ingest_text(name, source, A, idempotency_key="k1")
            assert made.sources[0].status == "new"


def test_a_repeat_does_not_bring_back_what_was_erased(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "doc.md", A, idempotency_key="k1")
    planner.erase(scope, "doc.md")
    again = planner.ingest_text(scope, "doc.md", A, idempotency_key="k1")
    assert again.sources[0].status == "unchanged"
    assert planner.source(scope, "doc.md").erased


def test_an_import_of_several_sources_is_known_by_any_that_it_changed(planner: Planner, scope: str) -> None:
    def lines(*texts: str) -> str:
        return "\n".join(
            json.dumps({"record": "source", "source_id": f"s{i}", "text": text})
            for i, text in enumerate(texts)
        )

    planner.ingest_text(scope, "f", lines("One.", "Two."), media_type=IMPORT)
    planner.ingest_text(scope, "f", lines("One.", "Three."), media_type=IMPORT, idempotency_key="k1")
    planner.ingest_text(scope, "f", lines("One.", "Four."), media_type=IMPORT)
    again = planner.ingest_text(scope, "f", lines("One.", "Three."), media_type=IMPORT, idempotency_key="k1")
    assert [(s.status, s.version_tx) for s in again.sources] == [("unchanged", 1), ("unchanged", 2)]
    assert current(planner, scope, "s1") == 3


def test_of_two_at_the_same_time_one_writes(planner: Planner, scope: str) -> None:
    planner.append(scope, "talk", [{"content": "First."}])
    for key in ("k1", "k2", "k3"):
        together = Barrier(2)

        def append(key: str = key, together: Barrier = together) -> tuple[str, int]:
            together.wait()
            made = planner.append(scope, "talk", [TURN], idempotency_key=key).sources[0]
            return made.status, made.version_tx

        with ThreadPoolExecutor(2) as pool:
            done = [future.result() for future in [pool.submit(append), pool.submit(append)]]
        assert sorted(status for status, _ in done) == ["changed", "unchanged"]
        assert len({tx for _, tx in done}) == 1
    assert len(planner.source(scope, "talk").spans) == 4


def test_neither_key_nor_text_is_to_be_read_in_the_ledger(
    planner: Planner, scope: str, conn: Connection
) -> None:
    planner.ingest_text(scope, "doc.md", A, idempotency_key="very-secret-key")
    rows = conn.execute(
        "SELECT l.detail::text FROM planner.ledger l JOIN planner.scope s USING (scope_id) WHERE s.name = %s",
        [scope],
    ).fetchall()
    assert len(rows) == 1
    assert "once_key" in rows[0][0]
    assert "very-secret-key" not in rows[0][0]
    assert "gate" not in rows[0][0]
    assert planner.verify_ledger(scope).ok


@pytest.mark.parametrize("key", ["", " ", "a b", "ä", "x" * 256, "a\0", "a\n"])
def test_what_is_no_key_is_refused(planner: Planner, scope: str, key: str) -> None:
    for write in (
        lambda: planner.ingest_text(scope, "doc.md", A, idempotency_key=key),
        lambda: planner.append(scope, "talk", [TURN], idempotency_key=key),
    ):
        with pytest.raises(RequestError) as refused:
            write()
        assert refused.value.detail["field"] == "idempotency_key"
