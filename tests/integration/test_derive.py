"""Derived text is a cache: it names what it was made from, is trusted and kept no further than that."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from planner import Planner
from planner.embedders import CallableEmbedder
from planner.errors import (
    ConflictingInput,
    EmptyInput,
    PlannerError,
    RequestError,
    UnknownScope,
    UnknownSpan,
)
from planner.ingest import derived_id, scope_id
from planner.store.doctor import examine
from planner.types import SpanRef, Verdict
from tests.integration.graph import (
    MODEL,
    Connection,
    ask,
    circle,
    circle_embedder,
    fresh_scope,
    rows_of,
)

FIRST, SECOND = "The gate closes at 10.", "The gate opens at 20."
DOCUMENT = f"{FIRST}\n\n{SECOND}\n"


@pytest.fixture
def spans(planner: Planner, scope: str) -> list[str]:
    """Give the spans of a document of two paragraphs, and of a note that is trusted less."""
    planner.ingest_text(scope, "doc.txt", DOCUMENT, trust="verified")
    planner.ingest_text(scope, "note.txt", "A note at 30.", trust="internal")
    held = (*planner.source(scope, "doc.txt").spans, *planner.source(scope, "note.txt").spans)
    return [str(span.ref) for span in held]


def origins(conn: Connection, scope: str, source_id: str) -> dict[int, list[str]]:
    """Return what each version of a cache was made from."""
    rows = conn.execute(
        "SELECT version_tx, from_source_id, from_version_tx, from_start, from_end FROM planner.derivation"
        " WHERE scope_id = %s AND source_id = %s ORDER BY 1, 2, 3, 4, 5",
        (scope_id(scope), source_id),
    ).fetchall()
    found: dict[int, list[str]] = {}
    for version, *ref in rows:
        found.setdefault(version, []).append(str(SpanRef(*ref)))
    return found


def made(planner: Planner, scope: str, *arguments: Any, **more: Any) -> tuple[str, str, int]:
    """Derive, and return the id, status and version of what was made."""
    (source,) = planner.derive(scope, *arguments, **more).sources
    return source.source_id, source.status, source.version_tx


def test_a_summary_is_a_cache_that_names_what_it_was_made_from(
    planner: Planner, conn: Connection, scope: str, spans: list[str]
) -> None:
    report = planner.derive(
        scope, "# Gate\n\nOpen from 20 to 10.\n", [spans[2], spans[0], spans[2]], attributes={"team": "sea"}
    )
    (source,) = report.sources
    name = derived_id("summary", [SpanRef.parse(spans[0]), SpanRef.parse(spans[2])])
    assert (source.source_id, source.status, source.version_tx) == (name, "new", 3)
    assert name.startswith("summary-")
    held = planner.source(scope, name)
    assert (held.source_class, held.media_type, held.title, held.trust) == (
        "cache",
        "text/markdown",
        "Gate",
        "internal",
    )
    assert held.attributes == {"team": "sea", "kind": "summary"}
    assert [span.span.kind for span in held.spans] == ["heading", "paragraph"]
    assert origins(conn, scope, name) == {3: sorted([spans[0], spans[2]])}
    assert [version.action for version in planner.versions(scope, name)] == ["derive"]
    assert planner.versions(scope, "doc.txt")[0].derived
    assert planner.verify_ledger(scope).ok
    nodes = conn.execute(
        "SELECT DISTINCT attributes ->> 'kind' FROM planner.node n JOIN planner.node_span s"
        " ON (s.scope_id, s.node_id, s.node_tx_from) = (n.scope_id, n.node_id, n.tx_from)"
        " WHERE n.scope_id = %s AND s.source_id = %s",
        (scope_id(scope), name),
    ).fetchall()
    assert nodes == [("summary",)]


def test_the_same_again_writes_nothing_and_another_text_is_a_new_version(
    planner: Planner, conn: Connection, scope: str, spans: list[str]
) -> None:
    name, status, first = made(planner, scope, "Short at 40.", spans)
    before = rows_of(conn, scope)
    assert made(planner, scope, "Short at 40.", [*reversed(spans), spans[0]]) == (name, "unchanged", first)
    assert rows_of(conn, scope) == before
    assert made(planner, scope, "Shorter at 40.", spans) == (name, "changed", first + 1)
    assert origins(conn, scope, name) == {first: spans, first + 1: spans}
    other_kind, other_spans = (
        made(planner, scope, "Short at 40.", spans, kind="gist"),
        made(planner, scope, "Short at 40.", spans[:2]),
    )
    assert len({name, other_kind[0], other_spans[0]}) == 3
    assert {status, other_kind[1], other_spans[1]} == {"new"}


def test_the_same_text_of_other_spans_is_a_version_of_its_own_that_plans_name(
    planner: Planner, conn: Connection, scope: str, spans: list[str]
) -> None:
    made(planner, scope, "Short at 0.", spans[:1], source_id="sum")
    (found,) = ask(planner, scope, k=1, hops=0).spans
    assert found.verdict.candidate.ref == SpanRef("sum", 3, 0, 11)
    assert made(planner, scope, "Short at 0.", spans[1:], source_id="sum") == ("sum", "changed", 4)
    (found,) = ask(planner, scope, k=1, hops=0).spans
    assert found.verdict.candidate.ref == SpanRef("sum", 4, 0, 11)
    assert origins(conn, scope, "sum") == {3: spans[:1], 4: spans[1:]}


def test_trust_may_be_lower_than_the_least_of_what_it_was_made_from_and_no_higher(
    planner: Planner, scope: str, spans: list[str]
) -> None:
    for given, expected in ((None, "internal"), ("internal", "internal"), ("untrusted", "untrusted")):
        name, _, _ = made(
            planner, scope, f"Of trust {given} at 40.", spans, source_id=f"t-{given}", trust=given
        )
        assert planner.source(scope, name).trust == expected
    of_untrusted = str(planner.source(scope, "t-untrusted").spans[0].ref)
    name, _, _ = made(planner, scope, "Of it at 50.", [spans[0], of_untrusted])
    assert planner.source(scope, name).trust == "untrusted"
    with pytest.raises(RequestError, match="no further than 'internal'"):
        planner.derive(scope, "Short.", spans, trust="verified")


REFUSED: dict[str, tuple[dict[str, Any], type[PlannerError], str]] = {
    "nothing": ({"from_": []}, RequestError, "name the spans"),
    "no span": ({"from_": ["doc.txt"]}, RequestError, "source@tx:start-end"),
    "another range": ({"from_": ["doc.txt@1:0-5"]}, UnknownSpan, r"doc\.txt@1:0-5 is not in the span ledger"),
    "another version": ({"from_": ["doc.txt@2:0-22"]}, UnknownSpan, r"doc\.txt@2:0-22"),
    "another source": (
        {"from_": ["none@1:0-22", "doc.txt@1:0-22"]},
        UnknownSpan,
        r": none@1:0-22 is not [^;]*$",
    ),
    "too far": ({"from_": [f"doc.txt@{10**19 - 1}:0-22"]}, UnknownSpan, "9999"),
    "a NUL": ({"from_": ["doc\0@1:0-22"]}, RequestError, "NUL"),
    "a surrogate": ({"from_": ["\ud800@1:0-22"]}, RequestError, "surrogates"),
    "an empty kind": ({"kind": ""}, RequestError, "kind = ''"),
    "a long kind": ({"kind": "a summary"}, RequestError, "kind = 'a summary'"),
    "a trust": ({"trust": "blind"}, RequestError, "trust = 'blind'"),
    "no text": ({"text": " \n"}, EmptyInput, "white space"),
    "a truth": ({"source_id": "doc.txt"}, ConflictingInput, "another class"),
    "no id": ({"source_id": ""}, PlannerError, "source_id"),
    "a scope": ({"scope": "-"}, RequestError, "scope name"),
    "no scope": ({"scope": "nowhere"}, UnknownScope, "nowhere"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_derived_is_refused_and_leaves_nothing(
    planner: Planner, conn: Connection, scope: str, spans: list[str], name: str
) -> None:
    given, kind, said = REFUSED[name]
    before = rows_of(conn, scope)
    with pytest.raises(kind, match=said):
        planner.derive(**{"scope": scope, "text": "Short at 40.", "from_": spans, **given})
    assert rows_of(conn, scope) == before


def test_spans_of_another_scope_are_unknown(planner: Planner, scope: str, spans: list[str]) -> None:
    elsewhere = fresh_scope()
    planner.ingest_text(elsewhere, "other.txt", "Other at 10.")
    with pytest.raises(UnknownSpan, match=r"doc\.txt@1:0-22 is not in the span ledger"):
        planner.derive(elsewhere, "Short.", spans[:1])


def test_a_cache_does_not_become_truth_nor_truth_a_cache(
    planner: Planner, scope: str, spans: list[str]
) -> None:
    made(planner, scope, "Short at 40.", spans, source_id="sum.md")
    with pytest.raises(ConflictingInput, match="another class"):
        planner.ingest_text(scope, "sum.md", "Short at 40.")
    assert planner.source(scope, "sum.md").source_class == "cache"


def test_plans_find_a_summary_at_the_discount_and_never_for_verification(
    planner: Planner, scope: str, spans: list[str]
) -> None:
    name, _, _ = made(planner, scope, "Short at 0.", spans)
    plan = ask(planner, scope, hops=0)
    by_class: dict[str, list[Verdict]] = {"truth": [], "cache": []}
    for span in plan.spans:
        by_class[span.verdict.candidate.source_class].append(span.verdict)
    (cache,) = by_class["cache"]
    discount = planner.engine.settings.cache_discount
    assert (cache.candidate.source_id, cache.candidate.score) == (name, 1.0)
    assert cache.weight == discount < 1.0
    evidence = plan.for_verification()
    assert [item.ref for item in evidence] == [
        v.candidate.ref for v in sorted(by_class["truth"], key=lambda v: -v.weight)
    ]
    assert [item.text for item in evidence] == [FIRST, SECOND, "A note at 30."]
    loaded = planner.load(plan.ref)
    assert loaded.for_verification() == evidence
    planner.erase(scope, "doc.txt")
    assert [item.text for item in planner.load(plan.ref).for_verification()] == [None, None, "A note at 30."]


def test_what_was_derived_goes_with_what_it_was_made_from_and_what_was_made_of_that(
    planner: Planner, conn: Connection, scope: str, spans: list[str]
) -> None:
    summary, _, _ = made(planner, scope, "Summary at 40.", spans[:2])
    gist, _, _ = made(planner, scope, "Gist at 50.", [str(planner.source(scope, summary).spans[0].ref)])
    unrelated, _, _ = made(planner, scope, "Unrelated at 60.", spans[2:])
    plan = ask(planner, scope, hops=0)
    erased = planner.erase(scope, "doc.txt")
    assert erased.sources == ("doc.txt", *sorted([summary, gist]))
    texts = {span.text for span in planner.load(plan.ref).spans}
    assert texts == {None, "A note at 30.", "Unrelated at 60."}
    left = {s.verdict.candidate.source_id for s in ask(planner, scope, hops=0).spans}
    assert left == {"note.txt", unrelated}
    with pytest.raises(UnknownSpan, match=r"doc\.txt@1:0-22 is erased"):
        planner.derive(scope, "Summary at 40.", spans[:2])
    assert origins(conn, scope, gist)  # ids and offsets stay


def test_an_erased_summary_is_made_again_as_a_fresh_version(
    planner: Planner, scope: str, spans: list[str]
) -> None:
    name, _, _ = made(planner, scope, "Summary at 40.", spans)
    planner.erase(scope, name)
    assert made(planner, scope, "Summary at 40.", spans) == (name, "changed", 5)
    assert planner.slice_text(scope, f"{name}@5:0-14") == "Summary at 40."


def test_a_span_of_an_old_version_counts_as_the_equal_one_of_the_newest(
    planner: Planner, conn: Connection, scope: str, spans: list[str]
) -> None:
    """A plan names an unchanged paragraph by the version that its node was derived from."""
    planner.ingest_text(scope, "doc.txt", f"Before all at 5.\n\n{FIRST}\n", trust="external")
    now = {str(span.ref) for span in planner.source(scope, "doc.txt").spans}
    name, _, _ = made(planner, scope, "Short at 40.", spans[:2], source_id="sum")
    assert origins(conn, scope, name) == {4: [spans[1], "doc.txt@3:18-40"]}
    assert "doc.txt@3:18-40" in now
    assert planner.source(scope, name).trust == "external"
    assert made(planner, scope, "Short at 40.", [spans[1], "doc.txt@3:18-40"], source_id="sum") == (
        name,
        "unchanged",
        4,
    )


def test_a_source_that_is_erased_meanwhile_is_refused_and_nothing_of_it_comes_back(
    planner: Planner, conn: Connection, scope: str, spans: list[str]
) -> None:
    def embed(texts: list[str]) -> Any:
        planner.erase(scope, "doc.txt")
        return circle(texts)

    late = Planner.from_pool(planner.engine.store.pool, embedder=CallableEmbedder(MODEL, 2, embed))
    with pytest.raises(UnknownSpan, match="is erased"):
        late.derive(scope, "The gate closes, in short, at 40.", spans)
    assert rows_of(conn, scope)["derivation"] == 0
    assert rows_of(conn, scope)["ledger"] == 3


def test_a_version_that_a_summary_was_made_from_is_not_pruned(
    planner: Planner, scope: str, spans: list[str]
) -> None:
    made(planner, scope, "Short at 40.", spans[:1])
    for angle in (50, 60):
        planner.ingest_text(scope, "doc.txt", f"Other at {angle}.")
    pruned = planner.prune_versions(scope, "doc.txt", keep_versions=1)
    assert (pruned.deleted, dict(pruned.kept)) == ((4,), {1: "derived", 5: "newest"})


def test_ids_depend_on_the_kind_and_each_span_and_nothing_else() -> None:
    refs = [SpanRef("a", 1, 0, 5), SpanRef("b@1:0-5", 2, 3, 4)]
    told = {
        derived_id(kind, chosen)
        for kind in ("summary", "gist")
        for chosen in (refs, refs[:1], refs[1:], [SpanRef("a", 1, 0, 6)], [SpanRef("a", 2, 0, 5)])
    }
    assert len(told) == 10
    assert derived_id("summary", refs) == "summary-037c815720438a63228c8972b5534b82"


def test_the_doctor_finds_nothing_wrong_with_caches(database_url: str) -> None:
    with Planner.connect(database_url, embedder=circle_embedder()) as opened:
        opened.ingest_text("s", "doc.txt", DOCUMENT)
        opened.derive("s", "Short at 40.", ["doc.txt@1:0-22"])
    with psycopg.connect(database_url, autocommit=True) as connection:
        assert [check for check in examine(connection) if check.ok is False] == []
