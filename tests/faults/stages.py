"""The stages of what a client does: each statement that it sends, each commit, told just before it goes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from planner.store import objects
from planner.store.queries import queries
from tests.integration.graph import Connection

COMMIT, COMMITTED = "commit", "committed"
"""The stages before a COMMIT is sent, and when it was answered."""

SETTINGS = "the settings"
"""The stage at which a transaction gets its role and its scope."""

At = Callable[[str, Connection], None]


class Watch:
    """Calls `at` with each stage of its connections and the connection; a repeated stage bears a number."""

    def __init__(self) -> None:
        self.at: At | None = None
        self._seen: Counter[str] = Counter()

    def begin(self, at: At) -> None:
        """Count from here."""
        self._seen.clear()
        self.at = at

    def tell(self, stage: str, conn: Connection) -> None:
        """Say that a connection has come to a stage."""
        if self.at is not None:
            self._seen[stage] += 1
            number = self._seen[stage]
            self.at(stage if number == 1 else f"{stage} {number}", conn)

    def connections(self) -> type[Connection]:
        """Return the class of the connections that are watched."""
        watch = self

        class Cursor(psycopg.Cursor[Any]):
            def execute(self, query: Any, *args: Any, **options: Any) -> Any:
                if name := name_of(query):
                    watch.tell(name, self.connection)
                return super().execute(query, *args, **options)

        class Watched(psycopg.Connection[Any]):
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, **options)
                self.cursor_factory = Cursor

            @contextmanager
            def transaction(
                self, savepoint_name: str | None = None, force_rollback: bool = False
            ) -> Iterator[psycopg.Transaction]:
                with super().transaction(savepoint_name, force_rollback) as transaction:
                    yield transaction
                    if not force_rollback:
                        watch.tell(COMMIT, self)
                if not force_rollback:
                    watch.tell(COMMITTED, self)

            def commit(self) -> None:
                is_inside = self.info.transaction_status == TransactionStatus.INTRANS
                if is_inside:
                    watch.tell(COMMIT, self)
                super().commit()
                if is_inside:
                    watch.tell(COMMITTED, self)

        return Watched


def name_of(statement: Any) -> str:
    """Return the name of a statement of ours, else its first words; nothing for an empty one."""
    return _name(_text(statement))


@cache
def _name(text: str) -> str:
    if text in (known := _whole()):
        return known[text]
    for name, pattern in _composed():
        if pattern.fullmatch(text):
            return name
    if text.startswith(("SET LOCAL", "SET TRANSACTION")):
        return SETTINGS
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return " ".join(" ".join(lines).split()[:4]).partition("(")[0].strip()


@cache
def _whole() -> dict[str, str]:
    files = (*objects.role_files(), *objects.ground_files(), *objects.object_files())
    return {text: name for name, text in queries().items()} | {
        _text(objects.statements(path)): path.name for path in files
    }


@cache
def _composed() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (name, re.compile(re.sub(r"\\\{\w+\\\}", ".*", re.escape(text)), re.DOTALL))
        for name, text in queries().items()
        if re.search(r"\{\w+\}", text)
    )


def _text(statement: Any) -> str:
    if isinstance(statement, sql.Composable):
        return statement.as_string(None)
    return statement.decode() if isinstance(statement, bytes) else str(statement)
