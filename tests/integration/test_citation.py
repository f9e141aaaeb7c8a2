"""A quote is held against the text that the store has of the evidence, and against nothing else."""

from __future__ import annotations

from uuid import uuid4

import pytest

from planner import EvidencePlan, Planner
from planner.errors import IntegrityError, RequestError, UnknownPlan
from planner.types import SpanRef, evidence_id, ranked
from tests.integration.graph import Connection, ask, fresh_scope
from tests.integration.tampering import other, tampering

DOCUMENT = "Before it all at 80.\n\nLe cafe\u0301 ferme\n  à dix heures, at 0.\n\nAfter it all at 70.\n"
QUOTE = "café ferme à dix"
SAID = DOCUMENT.encode().index("cafe\u0301".encode()), DOCUMENT.encode().index(b" heures")


@pytest.fixture
def plan(planner: Planner, scope: str) -> EvidencePlan:
    """Give a plan of a document's best paragraph and of a summary of it."""
    planner.ingest_text(scope, "doc.txt", DOCUMENT)
    best = str(planner.source(scope, "doc.txt").spans[1].ref)
    planner.derive(scope, f"In short: {QUOTE}, at 0.", [best], source_id="summary")
    made = ask(planner, scope, k=2, hops=0)
    assert [s.verdict.candidate.source_id for s in ranked(made)] == ["doc.txt", "summary"]
    return made


def test_a_quote_is_found_at_the_bytes_of_the_source_that_say_it(
    planner: Planner, scope: str, plan: EvidencePlan
) -> None:
    found = planner.verify_citation(plan.ref, f" {QUOTE} ", "E1")
    assert (found.verdict, found.supported) == ("supported", True)
    assert found.found == SpanRef("doc.txt", 1, *SAID)
    assert DOCUMENT.encode()[slice(*SAID)].decode() == "cafe\u0301 ferme\n  à dix"
    assert found.sentence == f"The quote is in E1 ({found.ref}), at {found.found}."
    by_span = planner.verify_citation(str(plan.ref), QUOTE, found.ref or "")
    assert (by_span.found, by_span.evidence) == (found.found, str(found.ref))
    assert planner.verify_citation(plan, f" {QUOTE} ", "E1") == found
    assert found.to_dict()["found"] == f"doc.txt@1:{SAID[0]}-{SAID[1]}"


def test_every_selected_truth_verifies_by_the_name_that_the_plan_gives_it(
    planner: Planner, plan: EvidencePlan
) -> None:
    for rank, span in enumerate(ranked(plan), start=1):
        name = evidence_id(rank)
        verdict = planner.verify_citation(plan.ref, span.text or "", name).verdict
        assert verdict == ("supported" if span.verdict.candidate.source_class == "truth" else "cache_class")
    (evidence,) = plan.for_verification()
    assert planner.verify_citation(plan, evidence.text or "", evidence.evidence).supported


@pytest.mark.parametrize(
    ("evidence", "quote", "expected"),
    [
        ("E1", "After it all", "not_in_span"),  # it is in the window
        ("E1", "heures, at 0. After", "not_in_span"),
        ("E1", "cafe ferme", "not_in_span"),
        ("E1", "CAFÉ FERME", "not_in_span"),
        ("E2", "In short", "cache_class"),
        ("E2", "nowhere", "cache_class"),
        ("E3", QUOTE, "unknown_evidence"),
        ("E0", QUOTE, "unknown_evidence"),
        ("", QUOTE, "unknown_evidence"),
        ("doc.txt", QUOTE, "unknown_evidence"),
        ("doc.txt@1:0-20", "Before it all", "unknown_evidence"),  # it was not selected
        ("\0\ud800", QUOTE, "unknown_evidence"),
    ],
)
def test_everything_else_is_not_supported(
    planner: Planner, plan: EvidencePlan, evidence: str, quote: str, expected: str
) -> None:
    for asked in (plan, plan.ref):
        found = planner.verify_citation(asked, quote, evidence)
        assert (found.verdict, found.supported, found.found) == (expected, False, None)


@pytest.mark.parametrize("quote", ["", "  \n"])
def test_an_empty_quote_is_refused(planner: Planner, plan: EvidencePlan, quote: str) -> None:
    for evidence in ("E1", "E9"):
        with pytest.raises(RequestError, match="quote"):
            planner.verify_citation(plan.ref, quote, evidence)


def test_erased_evidence_supports_nothing_also_where_the_caller_holds_its_text(
    planner: Planner, scope: str, plan: EvidencePlan
) -> None:
    planner.erase(scope, "doc.txt")
    assert plan.spans[0].text is not None
    for asked in (plan, plan.ref):
        assert planner.verify_citation(asked, QUOTE, "E1").verdict == "erased"
        assert planner.verify_citation(asked, QUOTE, "E2").verdict == "cache_class"


def test_changed_bytes_are_no_evidence_but_corruption(
    planner: Planner, conn: Connection, scope: str, plan: EvidencePlan
) -> None:
    tampering(conn, scope)(
        "UPDATE planner.source_version SET body = overlay(body PLACING 'X' FROM 30)"
        " WHERE source_id = 'doc.txt' AND scope_id = %s"
    )
    with pytest.raises(IntegrityError, match=r"doc\.txt@1"):
        planner.verify_citation(plan.ref, QUOTE, "E1")


def test_a_newer_version_changes_nothing_about_what_was_planned(
    planner: Planner, scope: str, plan: EvidencePlan
) -> None:
    planner.ingest_text(scope, "doc.txt", "Nothing of it at 10.")
    assert planner.verify_citation(plan.ref, QUOTE, "E1").supported
    assert not planner.verify_citation(plan.ref, "Nothing of it", "E1").supported


def test_a_plan_that_was_not_kept_can_be_cited_and_one_that_is_not_there_cannot(
    planner: Planner, scope: str, plan: EvidencePlan
) -> None:
    unkept = ask(other(planner, trace="off"), scope, k=2, hops=0)
    assert planner.verify_citation(unkept, QUOTE, "E1").supported
    elsewhere = fresh_scope()
    planner.ingest_text(elsewhere, "a.txt", "Another at 10.")
    for ref in (str(unkept.ref), f"{scope}:{uuid4()}", f"{elsewhere}:{plan.plan_id}", f"nowhere:{uuid4()}"):
        with pytest.raises(UnknownPlan):
            planner.verify_citation(ref, QUOTE, "E1")
    with pytest.raises(RequestError, match="plan reference"):
        planner.verify_citation("a plan", QUOTE, "E1")


def test_a_refused_plan_has_no_evidence(planner: Planner, scope: str, plan: EvidencePlan) -> None:
    nobody = {"field": "source_id", "op": "eq", "value": "none"}
    empty = ask(planner, scope, must=nobody)
    assert empty.spans == ()
    assert planner.verify_citation(empty.ref, QUOTE, "E1").sentence.endswith("it has no evidence.")
