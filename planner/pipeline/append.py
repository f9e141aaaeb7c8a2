"""Append, read top to bottom: where the conversation stands, which turns are new, and what they become.

Everything is looked up by key from the conversation's end, so that a turn costs the same at any length. The
rest is ingest: `write` compares, embeds, and writes one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from planner.engine import Engine
from planner.errors import ConflictingInput, MalformedInput
from planner.ingest import node_id, parse
from planner.ingest.media import CONVERSATION
from planner.ingest.turns import Tail, continued
from planner.pipeline.ingest import Compared, Ingested, check_kinds, write
from planner.pipeline.once import Once
from planner.store.changes import Changes, Current, CurrentVersion, changes
from planner.store.connect import Connection, run
from planner.store.write import read_current
from planner.types import Batch

Message = Mapping[str, Any]

MESSAGE = "message"
"""The kind of a conversation's spans."""

DOUBLING = tuple(2**i - 1 for i in range(24))
"""The occurrences of a text that are looked up first."""

PROBES = 32
"""How many are looked up between two of them: a text that is there 10,000 times takes three statements."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """How often a text is in a conversation: at least `low` times, at most `high`; where the last is."""

    low: int = 0
    high: int | None = None
    position: int | None = None


def append(
    engine: Engine,
    scope: str,
    conversation: str,
    messages: Sequence[Message],
    *,
    key: str | None = None,
) -> Ingested:
    """Put messages behind the conversation's last as one ledger transaction; a new one begins with them.

    A message whose `id` is there already is passed over; where one has none, an append whose outcome is
    unknown is not tried again, unless it has a `key`, under which it happens once. Raises MalformedInput,
    EmptyInput, ConflictingInput where a known id comes with another text or the source is no conversation,
    EmbedderError, StoreError.
    """
    once = Once.of(key, conversation_json(messages), [conversation])
    every = _parsed(engine, conversation, messages)
    check_kinds(engine, every)

    def compare(conn: Connection, scope_id: UUID, last_tx: int) -> Compared:
        params = {"scope_id": scope_id, "source_id": conversation}
        row = run(conn, "conversation_tail", params).fetchone()
        if row is None or row[10]:
            current = read_current(conn, scope_id, every, last_tx=last_tx)
            return Compared(every, current, changes(every, current))
        return _behind(engine, conn, scope_id, last_tx, conversation, messages, every, row)

    ids = (node.attributes.get("message_id") for node in every.nodes[1:])
    return write(engine, scope, compare, "append", once=once, repeatable=all(ids))


def conversation_json(messages: Iterable[Message]) -> bytes:
    """Return messages as the JSON that the parser reads. Raises MalformedInput for what JSON cannot hold."""
    try:
        return json.dumps({"messages": list(messages)}, default=_iso).encode()
    except (TypeError, ValueError) as error:
        raise MalformedInput(f"messages: {error}", field="messages") from None


def _iso(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON data")


def _parsed(engine: Engine, conversation: str, messages: Sequence[Message], **about: Any) -> Batch:
    return parse(
        conversation_json(messages),
        source_id=conversation,
        media_type=CONVERSATION,
        max_span_chars=engine.settings.max_span_chars,
        **about,
    )


def _behind(
    engine: Engine,
    conn: Connection,
    scope_id: UUID,
    last_tx: int,
    conversation: str,
    messages: Sequence[Message],
    every: Batch,
    row: Sequence[Any],
) -> Compared:
    """Compare with the tail that `conversation_tail` found."""
    version_tx, title, uri, trust, attributes, observed_at = row[:6]
    source_class, _, conversation_id, position, _, kind, ordinal, last_hash = row[6:]
    if kind != MESSAGE:
        raise ConflictingInput(
            f"{conversation!r} is no conversation: it ends with a {kind}; ingest it as a whole",
            source_id=conversation,
        )
    held = CurrentVersion(version_tx, content=(), metadata=(), identity=(), ended=False)
    current = Current(last_tx, {conversation: held})
    fresh = _fresh(conn, scope_id, conversation, messages, every)
    if not fresh:
        return Compared(every, current, Changes((), (), frozenset(), frozenset(), (), ()))
    about = {"title": title, "uri": uri, "trust": trust, "attributes": attributes, "observed_at": observed_at}
    turn = {"source_class": source_class, "conversation_id": conversation_id, "position": position}
    turns = _parsed(engine, conversation, fresh, **about, **turn)
    hashes = {bytes(last_hash), *(span.text_hash for span in turns.sources[0].spans)}
    taken = _taken(conn, scope_id, conversation, hashes)
    last = taken[bytes(last_hash)]
    last_node = node_id(conversation, MESSAGE, bytes(last_hash), last.low - 1) if last.low else None
    tail = Tail(version_tx, ordinal, last_node, ordinal if last.position is None else last.position)
    batch = continued(turns, tail, {text_hash: found.low for text_hash, found in taken.items()})
    return Compared(
        batch,
        current,
        Changes(batch.sources, batch.nodes, frozenset(), frozenset(), batch.edges, ()),
    )


def _fresh(
    conn: Connection, scope_id: UUID, conversation: str, messages: Sequence[Message], every: Batch
) -> list[Message]:
    """Return the messages with text whose ids are not there yet; of two with the same id the first."""
    given: dict[int, set[bytes]] = {}
    named: dict[int, str | None] = {}
    for node, span in zip(every.nodes[1:], every.sources[0].spans, strict=True):
        place = node.attributes["position"]
        given.setdefault(place, set()).add(span.text_hash)
        named[place] = span.message_id
    ids = sorted({name for name in named.values() if name is not None})
    params = {"scope_id": scope_id, "source_id": conversation, "messages": ids}
    known: dict[str, set[bytes]] = {}
    for name, hashed in run(conn, "known_messages", params) if ids else ():
        known.setdefault(name, set()).add(bytes(hashed))
    fresh = []
    for place, name in named.items():
        if name is None or known.setdefault(name, given[place]) is given[place]:
            fresh.append(messages[place])
        elif known[name] != given[place]:
            raise ConflictingInput(
                f"message {name!r} of {conversation!r} is there with another text; ingest the whole "
                "conversation to change it",
                source_id=conversation,
                message_id=name,
            )
    return fresh


def _taken(
    conn: Connection, scope_id: UUID, conversation: str, hashes: Iterable[bytes]
) -> dict[bytes, _Taken]:
    """Return how often each text is in the conversation, by looking up the ids that its nodes would have.

    A node's id is made of its text and a number that counts on from 0, so that the count is the first id that
    is missing; it is found by doubling, then between two.
    """
    taken = dict.fromkeys(hashes, _Taken())
    while unsure := {h: t for h, t in taken.items() if t.high is None or t.low < t.high}:
        asked = {
            node_id(conversation, MESSAGE, hashed, number): (hashed, number)
            for hashed, between in unsure.items()
            for number in _probes(between)
        }
        rows = run(conn, "taken_nodes", {"scope_id": scope_id, "nodes": list(asked)}).fetchall()
        present = {asked[identity]: position for identity, position in rows}
        for hashed, number in asked.values():
            between = taken[hashed]
            if (hashed, number) in present and number >= between.low:
                taken[hashed] = replace(between, low=number + 1, position=present[hashed, number])
            elif (hashed, number) not in present and (between.high is None or number < between.high):
                taken[hashed] = replace(between, high=number)
    return taken


def _probes(between: _Taken) -> Sequence[int]:
    if between.high is None:
        return DOUBLING
    return range(between.low, between.high, -(-(between.high - between.low) // PROBES))
