"""What an operation does when nothing happens to it: its stages, and which rows are there at each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

from planner.pipeline.tuning import refresh_statistics
from tests.faults.killing import calling, opened, session
from tests.faults.operations import OPERATIONS, Rows, rows
from tests.faults.stages import COMMITTED, SETTINGS, Watch
from tests.integration.graph import Connection, fresh_scope


@dataclass(frozen=True)
class Rehearsal:
    """What was committed at each stage, when the call had given its answer, and when it was made twice."""

    at: dict[str, Rows]
    done: Rows
    twice: Rows

    @property
    def few(self) -> list[str]:
        """Return the commits of what is written, and every eighth of the other stages."""
        following = enumerate(pairwise(self.at))
        return [one for i, (one, other) in following if i % 8 == 3 or self.at[one] != self.at[other]]

    def after_another(self, found: Rows) -> Rows:
        """Return what a call makes of `found`."""
        return self.twice if found == self.done else self.done


@cache
def rehearsal(url: str, operation: str) -> Rehearsal:
    """Make a call in a scope of its own.

    Between two transactions there is no stage: at the next statement it is the same. Nor is there one where
    it is PostgreSQL's to say whether statistics are stale.
    """
    (scope,) = prepared_scopes(url, [operation])
    watch = Watch()
    with session(url) as conn, calling(url, operation, watch) as call:
        at = staged(watch, partial(call, scope), lambda: rows(conn, scope))
        done, last = rows(conn, scope), list(at)[-1]
        none = (COMMITTED, f"{SETTINGS} ", "analyze")
        stages = {s: found for s, found in at.items() if s == last or not s.startswith(none)}
        call(scope)
        return Rehearsal(stages, done, rows(conn, scope))


def staged(watch: Watch, call: Callable[[], Any], look: Callable[[], Rows]) -> dict[str, Rows]:
    """Make a call; return what `look` finds committed at each of its stages."""
    at: dict[str, Rows] = {}
    committed = look()

    def note(stage: str, _: Connection) -> None:
        nonlocal committed
        if stage.startswith(COMMITTED):
            committed = look()
        at[stage] = committed

    watch.begin(note)
    call()
    watch.at = None
    return at


def prepared_scopes(url: str, operations: Sequence[str]) -> list[str]:
    """Return a fresh scope for each operation."""
    scopes = [fresh_scope(operation.replace(" ", "-")) for operation in operations]
    with opened(url) as planner:
        for operation, scope in zip(operations, scopes, strict=True):
            OPERATIONS[operation].prepare(planner, scope)
        refresh_statistics(planner.engine)
    return scopes
