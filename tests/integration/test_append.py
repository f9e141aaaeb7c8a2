"""Appending to a conversation: the same as ingesting it whole, turn by turn."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner import Planner
from planner.errors import ConflictingInput, EmptyInput, MalformedInput
from planner.ingest import scope_id, source_node_id
from planner.types import OPEN_TX
from tests.integration.graph import Connection, Graph, fresh_scope, rows_of

TALK = "talk.json"


def turn(content: str, **fields: Any) -> dict[str, Any]:
    return {"speaker": "Ada", "content": content, **fields}


def graph_of(conn: Connection, scope: str) -> dict[str, Any]:
    """Return what is current of a scope, without transactions: nodes, their texts and vectors, edges."""
    nodes = conn.execute(
        "SELECT n.node_id, n.kind, n.label, n.attributes::text, n.observed_at, p.text, e.vec::text"
        " FROM planner.node n"
        " LEFT JOIN LATERAL (SELECT planner.canonical_slice(ns.scope_id, ns.source_id, ns.version_tx,"
        " ns.span_start, ns.span_end) AS text FROM planner.node_span ns WHERE ns.scope_id = n.scope_id"
        " AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from) p ON true"
        " LEFT JOIN planner.embedding e"
        " ON (e.scope_id, e.node_id, e.tx_to) = (n.scope_id, n.node_id, n.tx_to)"
        " WHERE n.scope_id = %s AND n.tx_to = %s ORDER BY n.node_id",
        (scope_id(scope), OPEN_TX),
    ).fetchall()
    edges = conn.execute(
        "SELECT src, dst, predicate FROM planner.edge WHERE scope_id = %s AND tx_to = %s ORDER BY 1, 2, 3",
        (scope_id(scope), OPEN_TX),
    ).fetchall()
    return {"nodes": nodes, "edges": edges}


def about(planner: Planner, scope: str) -> dict[str, Any]:
    """Return how the conversation is shown, without what tells its versions apart."""
    shown = planner.source(scope, TALK).to_dict()
    spans = [
        {key: value for key, value in span.items() if key not in ("ref", "start", "end")}
        for span in shown["spans"]
    ]
    kept = ("title", "trust", "attributes", "byte_length", "text_hash", "media_type", "class")
    return {**{key: shown[key] for key in kept}, "spans": spans}


def test_turns_appended_one_by_one_are_the_conversation_ingested_whole(
    planner: Planner, conn: Connection
) -> None:
    turns = [turn("Hello."), turn("Ja, bitte? 日本", time="2024-05-01T09:30:00Z"), turn("Hello."), turn("B.")]
    grown, whole = fresh_scope("grown"), fresh_scope("whole")
    for one in turns:
        planner.append(grown, TALK, [one])
    planner.ingest_conversation(whole, TALK, turns)
    assert graph_of(conn, grown) == graph_of(conn, whole)
    assert about(planner, grown) == about(planner, whole)
    refs = [str(held.ref) for held in planner.source(grown, TALK).spans]
    assert refs == ["talk.json@1:0-6", "talk.json@2:2-19", "talk.json@3:2-8", "talk.json@4:2-4"]
    assert [planner.slice_text(grown, ref) for ref in refs] == [one["content"] for one in turns]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.sampled_from(["yes", "no", "A longer one.\n\nIn two parts.", "x " * 700]), min_size=1),
    cuts=st.sets(st.integers(1, 12)),
)
def test_however_a_conversation_is_cut_into_appends_it_is_the_same(
    planner: Planner, conn: Connection, texts: list[str], cuts: set[int]
) -> None:
    turns = [turn(text, id=f"m{i}") for i, text in enumerate(texts)]
    grown, whole = fresh_scope("grown"), fresh_scope("whole")
    edges = [0, *sorted(cut for cut in cuts if cut < len(turns)), len(turns)]
    for first, after in pairwise(edges):
        planner.append(grown, TALK, turns[first:after])
    planner.ingest_conversation(whole, TALK, turns)
    assert graph_of(conn, grown) == graph_of(conn, whole)
    assert about(planner, grown) == about(planner, whole)


def test_a_text_that_is_there_many_times_gets_the_next_number(planner: Planner, conn: Connection) -> None:
    grown, whole = fresh_scope("grown"), fresh_scope("whole")
    turns = [turn("ok") for _ in range(151)]
    planner.ingest_conversation(grown, TALK, turns[:149])
    planner.append(grown, TALK, turns[149:150])
    planner.append(grown, TALK, turns[150:])
    planner.ingest_conversation(whole, TALK, turns)
    assert graph_of(conn, grown) == graph_of(conn, whole)


def test_the_whole_conversation_again_is_unchanged_and_with_one_turn_more_it_keeps_its_nodes(
    planner: Planner, conn: Connection, scope: str
) -> None:
    turns = [turn("One at 10."), turn("Two at 20."), turn("Three at 30.")]
    planner.ingest_conversation(scope, TALK, turns[:1], title="A talk", trust="internal", attributes={"k": 1})
    for one in turns[1:]:
        planner.append(scope, TALK, [one])
    metadata: dict[str, Any] = {"title": "A talk", "trust": "internal", "attributes": {"k": 1}}
    before = rows_of(conn, scope)
    again = planner.ingest_conversation(scope, TALK, turns, **metadata)
    assert (again.sources[0].status, again.sources[0].version_tx, rows_of(conn, scope)) == (
        "unchanged",
        3,
        before,
    )
    more = planner.ingest_conversation(scope, TALK, [*turns, turn("Four at 40.")], **metadata)
    assert (more.sources[0].status, more.sources[0].version_tx, more.counts["nodes"]) == ("changed", 4, 1)
    planner.append(scope, TALK, [turn("Five at 50.")])
    assert [v.extends_tx for v in planner.versions(scope, TALK)] == [None, 1, 2, None, 4]
    last = planner.source(scope, TALK)
    assert [held.span.ordinal for held in last.spans] == [0, 1, 2, 3, 4]
    assert (last.title, last.trust, last.attributes) == ("A talk", "internal", {"k": 1})
    nodes = graph_of(conn, scope)["nodes"]
    assert {row[2] for row in nodes} == {"Ada", "A talk"}
    chained = [src for src, _, predicate in graph_of(conn, scope)["edges"] if predicate == "next"]
    assert len(chained) == len(set(chained)) == 4


def test_earlier_nodes_stay_and_the_past_is_as_it_was(planner: Planner, conn: Connection, scope: str) -> None:
    planner.append(scope, TALK, [turn("One at 10.")])
    then = graph_of(conn, scope)
    planner.append(scope, TALK, [turn("Two at 20.")])
    assert set(then["nodes"]) < set(graph_of(conn, scope)["nodes"])
    found = planner.plan(scope, "at 0", as_of=1, hops=0)
    assert [span.text for span in found.spans] == ["One at 10."]
    assert {span.text for span in planner.plan(scope, "at 0", hops=0).spans} == {"One at 10.", "Two at 20."}
    assert then["edges"][0][1] == source_node_id(TALK)


def test_a_message_that_is_there_is_passed_over_and_the_rest_goes_in(
    planner: Planner, conn: Connection, scope: str
) -> None:
    first = [turn("One.", id="m1"), turn("Two.", id=2)]
    planner.append(scope, TALK, first)
    before = rows_of(conn, scope)
    again = planner.append(scope, TALK, first)
    assert (again.sources[0].status, again.counts, rows_of(conn, scope)) == ("unchanged", {}, before)
    planner.append(scope, TALK, [*first, turn("Three.", id="m3"), turn("Three.", id="m3"), turn("Four.")])
    said = [held.span.message_id for held in planner.source(scope, TALK).spans]
    assert said == ["m1", "2", "m3", None]


def test_a_known_message_with_another_text_is_refused_and_nothing_is_written(
    planner: Planner, conn: Connection, scope: str
) -> None:
    planner.append(scope, TALK, [turn("One.", id="m1")])
    before = rows_of(conn, scope)
    with pytest.raises(ConflictingInput, match=r"'m1' of 'talk\.json'"):
        planner.append(scope, TALK, [turn("New.", id="m2"), turn("One, edited.", id="m1")])
    assert rows_of(conn, scope) == before


def test_a_message_that_a_later_version_left_out_is_new_again(planner: Planner, scope: str) -> None:
    planner.append(scope, TALK, [turn("One.", id="m1"), turn("Two.", id="m2")])
    planner.ingest_conversation(scope, TALK, [turn("Two.", id="m2")])
    planner.append(scope, TALK, [turn("One.", id="m1"), turn("Two.", id="m2")])
    assert [held.span.message_id for held in planner.source(scope, TALK).spans] == ["m2", "m1"]


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([], EmptyInput),
        ([turn("  ")], EmptyInput),
        ([{"speaker": "Ada"}], MalformedInput),
        ([turn("x", time="soon")], MalformedInput),
        ([turn("a\0b")], MalformedInput),
        ([turn("x", id=object())], MalformedInput),
        (["x"], MalformedInput),
    ],
)
def test_messages_that_are_none_write_nothing(
    planner: Planner, conn: Connection, scope: str, messages: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        planner.append(scope, TALK, messages)
    assert set(rows_of(conn, scope).values()) == {0}


def test_a_document_is_no_conversation(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "doc.md", "# Title\n\nA paragraph.")
    with pytest.raises(ConflictingInput, match="ends with a paragraph"):
        planner.append(scope, "doc.md", [turn("Hello.")])


def test_an_imported_conversation_goes_on_behind_its_last_span(planner: Planner, scope: str) -> None:
    graph = Graph().source("talk", "One.", [(0, 4)], kind="message")
    graph.node("mine", 0, spans=[("talk", 0, 4)]).into(planner, scope)
    planner.append(scope, "talk", [turn("Two at 20.")])
    assert [held.span.ordinal for held in planner.source(scope, "talk").spans] == [0, 1]


def test_times_may_be_datetimes(planner: Planner, scope: str) -> None:
    when = datetime(2024, 5, 1, tzinfo=UTC)
    planner.append(scope, TALK, [turn("One.", time=when)])
    window = {"from": "2024-04-30T00:00:00Z", "to": "2024-05-02T00:00:00Z"}
    assert planner.plan(scope, "at 0", window=window, hops=0).spans
