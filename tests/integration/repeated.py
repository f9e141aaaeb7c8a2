"""What is done again where the database fails in passing: each read, each write, and how to disturb it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from planner import Planner
from planner.ingest import parse, scope_id
from planner.pipeline.ingest import ingest
from planner.pipeline.withdraw import withdraw_vanished
from tests.integration.graph import Connection, circle_embedder, fan

LATER = datetime(2100, 1, 1, tzinfo=UTC)

APPLICATION = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'planner'"
)
WAITING = APPLICATION + " AND wait_event_type = 'Lock'"


@contextmanager
def doing(call: Callable[[], Any]) -> Iterator[Future[Any]]:
    """Make a call in a thread."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(call)


def waiting_pid(conn: Connection, call: Future[Any]) -> int:
    """Return the backend of the planner that waits for a lock, as soon as one does."""
    while not call.done():
        if row := conn.execute(WAITING).fetchone():
            return int(row[0])
        time.sleep(0.01)
    raise AssertionError(f"it did not wait: {call.result()}")


def through_a_kill(other: Connection, observer: Connection, lock: str, work: Callable[[], Any]) -> Any:
    """Return what `work` gives, whose backend is terminated while it waits for a lock of `other`'s.

    `lock` is a table of the planner's and a mode. The lock is held until the work has come back and waits.
    """
    other.execute("BEGIN")
    other.execute(f"LOCK TABLE planner.{lock} MODE".encode())
    with doing(work) as call:
        try:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (waiting_pid(observer, call),))
            waiting_pid(observer, call)
        finally:
            other.execute("COMMIT")
    return call.result()


def fill(planner: Planner, scope: str) -> None:
    """Give a scope what the writes below change: a graph, two versions, a file that vanished, a plan."""
    fan(0, 30).into(planner, scope)
    for text in ("One at 10.", "Two at 20."):
        planner.ingest_text(scope, "doc.md", text)
    gone = parse(b"A file at 40.", source_id="gone.md")
    ingest(planner.engine, scope, gone, origin={"folder": "folder", "file": "gone.md"})
    planner.plan(scope, "at 0")


READS: dict[str, tuple[str, Callable[[Planner, str, str], Any]]] = {
    "load": ("plan", lambda planner, plan, _: planner.load(plan)),
    "replay": ("plan_candidate", lambda planner, plan, _: planner.replay(plan)),
    "why": ("plan_node", lambda planner, plan, _: planner.why(plan, "n0.txt")),
    "replan": ("embedding", lambda planner, plan, _: planner.replan(plan)),
    "diff": ("plan", lambda planner, plan, other: planner.diff(plan, other)),
    "verify a plan": ("source_version", lambda planner, plan, _: planner.verify_plan(plan)),
    "verify a ledger": ("ledger", lambda planner, *_: planner.verify_ledger("s")),
    "what if, of a plan": ("plan", lambda planner, plan, _: planner.whatif({"budget": 5}, plans=[plan])),
    "what if, of a scope": (
        "plan_candidate",
        lambda planner, *_: planner.whatif({"budget": 5}, scopes=["s"]),
    ),
    "scopes": ("scope", lambda planner, *_: planner.scopes()),
    "sources": ("source", lambda planner, *_: planner.sources("s")),
    "a source": ("span", lambda planner, *_: planner.source("s", "n0.txt")),
    "versions": ("plan_candidate", lambda planner, *_: planner.versions("s", "n0.txt")),
    "the row of a span": ("span", lambda planner, *_: planner.span_row("s", "n0.txt@1:0-14")),
    "the text of a span": ("source_version", lambda planner, *_: planner.slice_text("s", "n0.txt@1:0-14")),
    "tokens": ("api_token", lambda planner, *_: planner.tokens("s")),
    "what may be pruned": ("plan", lambda planner, *_: planner.prunable_trace(LATER)),
}
"""Each read, with a table that it reads; it is given two plans of `s`."""


@dataclass(frozen=True)
class Write:
    """A write, a table to keep it waiting at, and what a statement says of the transaction that counts."""

    table: str
    says: bytes
    work: Callable[[Planner, str], Any]


def append(planner: Planner, scope: str, **fields: str) -> Any:
    """Append a turn, without an id unless one is given."""
    return planner.append(scope, "talk.json", [{"content": "A turn at 50.", **fields}])


def withdraw(planner: Planner, scope: str) -> Any:
    """Withdraw the file that vanished."""
    return withdraw_vanished(planner.engine, scope, folders={"folder"}, files=(), kept=())


def reembed(planner: Planner, scope: str) -> Any:
    """Move the scope to another model."""
    again = circle_embedder()
    return planner.reembed(scope, type(again)("other", 2, again.function))


def replan(planner: Planner, scope: str) -> Any:
    """Make the only plan again and keep it."""
    with planner.engine.store.scoped(scope_id(scope), "reader") as conn:
        ((plan_id,),) = conn.execute("SELECT plan_id FROM planner.plan").fetchall()
    return planner.replan(f"{scope}:{plan_id}", keep=True)


_LEDGER = b"INSERT INTO planner.ledger"
_POOL = b"INSERT INTO planner.plan_candidate"

WRITES = {
    "ingest": Write("node_span", _LEDGER, lambda p, scope: p.ingest_text(scope, "new.md", "New at 60.")),
    "append": Write("edge", _LEDGER, lambda p, scope: append(p, scope, id="m1")),
    "plan": Write("plan_candidate", _POOL, lambda p, scope: p.plan(scope, "at 0")),
    "replan": Write("plan", _POOL, replan),
    "erase": Write("span", _LEDGER, lambda p, scope: p.erase(scope, "doc.md")),
    "withdraw": Write("source_version", _LEDGER, withdraw),
    "prune versions": Write("span", _LEDGER, lambda p, s: p.prune_versions(s, "doc.md", keep_versions=1)),
    "prune traces": Write("plan", b"DELETE FROM planner.plan", lambda p, s: p.prune_trace(LATER, s)),
    "register a model": Write("embedding_model", b"INSERT INTO planner.embedding_model", reembed),
    "reembed a batch": Write("embedding", b"INSERT INTO planner.embedding ", reembed),
    "switch models": Write("scope_model", _LEDGER, reembed),
    "empty a scope": Write("node", b"DELETE FROM planner.node ", lambda p, scope: p.delete_scope(scope)),
    "end a scope": Write("ledger", b"DELETE FROM planner.scope ", lambda p, scope: p.delete_scope(scope)),
}
"""Each transaction that writes and may be repeated, in a scope that was filled."""
