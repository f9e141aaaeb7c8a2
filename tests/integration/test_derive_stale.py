"""A cache is stale once what it was made from has a newer version, is withdrawn or erased; plans say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import InsufficientEvidence, Planner
from planner.types import SpanRef
from tests.integration.graph import Connection, ask
from tests.integration.tampering import tampering

SUMMARY = SpanRef("summary", 3, 0, 14)


@pytest.fixture
def derived(planner: Planner, scope: str, tmp_path: Path) -> Path:
    """Give a folder whose file became a source, of which a summary was made; and a conversation beside it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "stays.txt").write_text("It stays at 70.")
    (folder / "doc.txt").write_text("The gate closes at 10.\n\nAnd opens at 20.")
    planner.ingest(scope, folder)
    planner.derive(scope, "Summary at 40.", ["doc.txt@1:0-22"], source_id="summary")
    return folder


def stale(planner: Planner, scope: str, **fields: Any) -> set[str]:
    """Return the sources of the stale spans in the pool of a plan, which must be the newest of those."""
    plan = ask(planner, scope, hops=0, **fields)
    assert planner.load(plan.ref).stale == plan.stale
    assert sorted(map(str, plan.stale)) == sorted(plan.recall["stale"])
    return {ref.source_id for ref in plan.stale}


def edit(planner: Planner, scope: str, folder: Path) -> None:
    (folder / "doc.txt").write_text("The gate closes at 15.")
    planner.ingest(scope, folder)


def rename(planner: Planner, scope: str, folder: Path) -> None:
    planner.ingest(scope, folder, title="Another title")


def withdraw(planner: Planner, scope: str, folder: Path) -> None:
    (folder / "doc.txt").unlink()
    planner.ingest(scope, folder, sync=True)


def nothing(planner: Planner, scope: str, folder: Path) -> None:
    planner.ingest(scope, folder)


def beside(planner: Planner, scope: str, folder: Path) -> None:
    (folder / "stays.txt").write_text("It changes at 75.")
    planner.ingest(scope, folder)


@pytest.mark.parametrize(
    ("event", "expected"),
    [(edit, True), (rename, True), (withdraw, True), (nothing, False), (beside, False)],
)
def test_a_summary_is_stale_from_the_transaction_on_that_changed_its_source(
    planner: Planner,
    scope: str,
    derived: Path,
    event: Callable[[Planner, str, Path], None],
    expected: bool,
) -> None:
    assert stale(planner, scope) == set()
    event(planner, scope, derived)
    assert stale(planner, scope) == ({"summary"} if expected else set())
    assert stale(planner, scope, as_of=3) == set()  # as of then it was not
    if expected:
        assert stale(planner, scope, as_of=4) == {"summary"}


def test_a_summary_whose_source_alone_is_erased_is_stale(
    planner: Planner, conn: Connection, scope: str, derived: Path
) -> None:
    """Erasure takes the summary as well; where a row was erased by other means it is at least said."""
    tampering(conn, scope)(
        "UPDATE planner.source_version SET body = NULL, erased_tx = 3"
        " WHERE source_id = 'doc.txt' AND scope_id = %s"
    )
    assert stale(planner, scope) == {"summary"}


def test_a_source_that_was_withdrawn_and_came_back_the_same_leaves_it_stale(
    planner: Planner, scope: str, derived: Path
) -> None:
    text = (derived / "doc.txt").read_text()
    withdraw(planner, scope, derived)
    (derived / "doc.txt").write_text(text)
    planner.ingest(scope, derived)
    assert stale(planner, scope) == {"summary"}
    planner.derive(scope, "Summary at 40.", ["doc.txt@1:0-22"], source_id="summary")
    assert stale(planner, scope) == set()


def test_a_summary_that_is_made_again_of_the_newer_version_is_fresh_also_with_the_same_text(
    planner: Planner, scope: str, derived: Path
) -> None:
    edit(planner, scope, derived)
    assert stale(planner, scope) == {"summary"}
    planner.derive(scope, "Summary at 40.", ["doc.txt@4:0-22"], source_id="summary")
    assert stale(planner, scope) == set()
    assert stale(planner, scope, as_of=4) == {"summary"}


def test_a_summary_made_of_what_is_superseded_is_stale_from_the_start(
    planner: Planner, scope: str, derived: Path
) -> None:
    edit(planner, scope, derived)
    planner.derive(scope, "Of yesterday at 50.", ["doc.txt@1:0-22"], source_id="late")
    assert stale(planner, scope) == {"summary", "late"}


def test_what_was_made_of_a_stale_summary_is_stale(planner: Planner, scope: str, derived: Path) -> None:
    planner.derive(scope, "Gist at 50.", ["summary@3:0-14"], source_id="gist")
    planner.derive(scope, "Gist of the gist at 55.", ["gist@4:0-11"], source_id="gist of gist")
    planner.derive(scope, "Apart at 60.", ["stays.txt@2:0-15"], source_id="apart")
    assert stale(planner, scope) == set()
    edit(planner, scope, derived)
    assert stale(planner, scope) == {"summary", "gist", "gist of gist"}


def test_a_new_version_of_a_summary_makes_stale_what_was_made_of_the_old_one(
    planner: Planner, scope: str, derived: Path
) -> None:
    planner.derive(scope, "Gist at 50.", ["summary@3:0-14"], source_id="gist")
    planner.derive(scope, "Another summary at 45.", ["doc.txt@1:0-22"], source_id="summary")
    assert stale(planner, scope) == {"gist"}


def test_a_turn_that_is_appended_makes_nothing_stale_and_another_conversation_does(
    planner: Planner, scope: str
) -> None:
    turns = [{"content": f"Turn at {angle}.", "id": str(angle)} for angle in (10, 20, 30)]
    planner.append(scope, "talk.json", turns[:1])
    planner.append(scope, "talk.json", turns[1:2])
    refs = [str(span.ref) for span in planner.source(scope, "talk.json").spans]
    assert [ref.partition(":")[0] for ref in refs] == ["talk.json@1", "talk.json@2"]
    planner.derive(scope, "Talked at 40.", refs, source_id="summary")
    planner.append(scope, "talk.json", turns[2:])
    assert stale(planner, scope) == set()
    planner.ingest_conversation(scope, "talk.json", turns)  # the same whole
    assert stale(planner, scope) == set()
    planner.ingest_conversation(scope, "talk.json", [*turns, {"content": "More at 35."}])
    assert stale(planner, scope) == {"summary"}


def test_a_summary_that_rolls_on_from_its_own_version_is_stale_by_what_it_was_made_from_alone(
    planner: Planner, scope: str, derived: Path
) -> None:
    def roll(text: str, *refs: str) -> None:
        planner.derive(scope, text, refs, source_id="summary")

    roll("Summary at 40.\n\nThen at 45.", "summary@3:0-14", "stays.txt@2:0-15")
    assert stale(planner, scope) == set()
    roll("Summary at 40.\n\nThen at 45.\n\nAt last at 50.", "summary@4:0-14", "summary@4:16-27")
    assert stale(planner, scope) == set()
    edit(planner, scope, derived)  # three versions below
    assert stale(planner, scope) == {"summary"}


def test_what_is_stale_is_recorded_whether_selected_rejected_or_refused_and_hashed_by_none(
    planner: Planner, scope: str, derived: Path
) -> None:
    match = {"field": "source_id", "op": "eq", "value": "summary"}
    before = ask(planner, scope, match=match, hops=0)
    edit(planner, scope, derived)
    after = ask(planner, scope, match=match, hops=0)
    assert (before.stale, after.stale) == (set(), {SUMMARY})
    assert (before.plan_hash, before.pool_hash) == (after.plan_hash, after.pool_hash)
    assert planner.replay(after.ref).plan_hash == after.plan_hash
    assert planner.replan(before.ref).identical
    assert planner.load(before.ref).stale == set()  # as it was
    with pytest.raises(InsufficientEvidence) as refused:
        planner.plan(scope, match=match, hops=0, budget_tokens=1)
    assert planner.load(str(refused.value.plan)).stale == {SUMMARY}
    assert planner.load(str(refused.value.plan)).rejected[0].verdict.candidate.ref == SUMMARY


def test_why_says_that_a_summary_was_stale(planner: Planner, scope: str, derived: Path) -> None:
    fresh = ask(planner, scope, hops=0)
    edit(planner, scope, derived)
    plan = ask(planner, scope, hops=0)
    said = planner.why(plan.ref, str(SUMMARY)).answers[0]
    assert said.fate.facts["stale"] is True
    assert "derived text and was stale: what it was made from had a newer version" in said.sentence
    for ref, what in ((fresh.ref, str(SUMMARY)), (plan.ref, "stays.txt")):
        other = planner.why(ref, what).answers[0]
        assert "stale" not in other.fate.facts
        assert "stale" not in other.sentence


def test_a_plan_without_caches_lists_none(planner: Planner, scope: str, derived: Path) -> None:
    edit(planner, scope, derived)
    truth = {"field": "class", "op": "eq", "value": "truth"}
    assert stale(planner, scope, must=truth) == set()
