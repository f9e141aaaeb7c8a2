"""What the processes do: each function takes a planner of the process's own, and returns what it was told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import methodcaller
from typing import Any
from unittest.mock import patch

from planner import Planner
from planner.errors import EmbedderError, PlannerError
from planner.store import upgrade
from planner.store.connect import Connection
from planner.store.upgrade import migrate
from tests.faults.crew import WORDS, await_gate, later, parts

TALK, SHARED = "talk.json", "shared.md"


@dataclass
class Done:
    """What one process wrote in a scope, as the planner reported it: versions, turns, plans."""

    versions: list[tuple[str, int]] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)
    first_hashes: set[str | None] = field(default_factory=set)

    def wrote(self, report: Any) -> None:
        """Keep the versions that a report calls written."""
        self.versions += [(s.source_id, s.version_tx) for s in report.sources if s.status != "unchanged"]


def live(planner: Planner, scopes: list[str], name: str, rounds: int) -> dict[str, Done]:
    """Ingest, append and plan in all scopes by turns; plans as of transaction 1 among them."""
    done = {scope: Done() for scope in scopes}
    for i in range(rounds):
        for scope in scopes:
            _live(planner, scope, name, i, done[scope])
    return done


def _live(planner: Planner, scope: str, name: str, i: int, done: Done) -> None:
    done.wrote(planner.ingest_text(scope, f"{name}/{i}.md", f"Note {i} of {name}, at {i}."))
    turn = f"Turn {i} of {name}, at {10 + i}."
    done.wrote(planner.append(scope, TALK, [{"content": turn, "id": f"{name}-{i}", "speaker": name}]))
    done.turns.append(turn)
    done.wrote(planner.append(scope, f"{name}.json", [{"content": turn}]))
    done.wrote(planner.ingest_text(scope, SHARED, f"The same at 20.\n\nState {i} of {name}, at 30."))
    first = planner.plan(scope, "at 0", as_of=1)
    latest = planner.plan(scope, "at 0")
    done.plans += [first.plan_id, latest.plan_id]
    done.first_hashes.add(first.plan_hash)


def ingest(planner: Planner, scope: str, source_id: str, text: str) -> tuple[str, int]:
    """Ingest one text; return what became of it."""
    (source,) = planner.ingest_text(scope, source_id, text).sources
    return source.status, source.version_tx


def churn(planner: Planner, scope: str, name: str, rounds: int) -> Done:
    """Write new versions of one source, append to one conversation, and plan over both."""
    done = Done()
    for i in range(rounds):
        secret = f"A secret at 5.\n\nWhat {name} knows in round {i}, at 15."
        done.wrote(planner.ingest_text(scope, SHARED, secret, title=f"Of {name}"))
        turn = f"Turn {i} of {name}, at 25."
        done.wrote(planner.append(scope, TALK, [{"content": turn, "id": f"{name}-{i}", "speaker": name}]))
        done.plans.append(planner.plan(scope, "at 0", counter=WORDS, allow_ungrounded=True).plan_id)
    return done


def erase(planner: Planner, scope: str, sources: list[str], rounds: int) -> list[int]:
    """Erase sources again and again; return the transactions that it took."""
    erased = [planner.erase(scope, source).tx for _ in range(rounds) for source in sources]
    return [tx for tx in erased if tx is not None]


def write(planner: Planner, scope: str, name: str, rounds: int) -> Done:
    """Ingest and append; where the scope has moved to the other model, go on with that."""
    done, moved = Done(), Planner.from_pool(planner.engine.store.pool, **parts(embedder=later()))
    for i in range(rounds):
        note, turn = f"Note {i} of {name}, at {i}.", f"Turn {i} of {name}, at {10 + i}."
        done.turns.append(turn)
        calls: tuple[Callable[[Planner], Any], ...] = (
            methodcaller("ingest_text", scope, f"{name}/{i}.md", note),
            methodcaller("append", scope, TALK, [{"content": turn, "id": f"{name}-{i}"}]),
        )
        for call in calls:
            try:
                done.wrote(call(planner))
            except EmbedderError:
                planner = moved
                done.wrote(call(planner))
    return done


def reembed(planner: Planner, scope: str) -> int | None:
    """Move a scope to the other model; return the transaction of the switch."""
    return planner.reembed(scope, later(), batch=8).tx


def plan(planner: Planner, scope: str, rounds: int) -> list[str]:
    """Make plans; return their ids."""
    return [planner.plan(scope, f"at {i}", counter=WORDS).plan_id for i in range(rounds)]


def prune_trace(planner: Planner, scope: str | None, rounds: int) -> tuple[int, int, int]:
    """Prune all plans that are there, again and again; return how many plans, candidates and nodes went."""
    pruned = [planner.prune_trace(datetime.now(UTC), scope) for _ in range(rounds)]
    return sum(p.plans for p in pruned), sum(p.candidates for p in pruned), sum(p.nodes for p in pruned)


def inhabit(planner: Planner, scope: str, name: str, rounds: int) -> Counter[str]:
    """Ingest, append and plan in a scope that others delete; return how often each went which way."""
    went: Counter[str] = Counter()
    for i in range(rounds):
        for said, call in (
            (
                "ingest",
                lambda i=i: planner.ingest_text(scope, f"{name}.md", f"The same at 5.\n\nNow {i}, at {i}."),
            ),
            (
                "append",
                lambda i=i: planner.append(scope, TALK, [{"content": f"{i} of {name}", "id": f"{name}-{i}"}]),
            ),
            ("plan", lambda: planner.plan(scope, "at 0", counter=WORDS, allow_ungrounded=True)),
        ):
            went[f"{said}: {_outcome(call)}"] += 1
    return went


def delete(planner: Planner, scope: str, rounds: int) -> Counter[str]:
    """Delete a scope again and again, whoever makes it anew; return how often it went which way."""
    return Counter(f"delete: {_outcome(lambda: planner.delete_scope(scope))}" for _ in range(rounds))


def migrate_at_gate(url: str, stage: str | None) -> tuple[str, ...]:
    """Migrate when the gate is open, or wait for it before a stage; return what was applied."""
    if stage is None:
        await_gate(url)
        return migrate(url).applied
    go_on = getattr(upgrade, stage)

    def wait(conn: Connection) -> Any:
        await_gate(url)
        return go_on(conn)

    with patch.object(upgrade, stage, wait):
        return migrate(url).applied


def migrate_often(planner: Planner, rounds: int) -> list[str]:
    """Migrate a database that is up to date: its objects are built anew; return how that went."""
    return [_outcome(lambda: migrate(planner.engine.store.pool.conninfo)) for _ in range(rounds)]


def scrub(planner: Planner, scope: str, source_id: str) -> str:
    """Erase a source and write the tables anew; return how that went."""
    return _outcome(lambda: planner.erase(scope, source_id, scrub=True))


def index(planner: Planner, scope: str) -> str:
    """Build a scope's own vector index; return how that went."""
    return _outcome(lambda: planner.build_index(scope))


def _outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except PlannerError as error:
        return f"{error.code}: {error}"
    return "done"
