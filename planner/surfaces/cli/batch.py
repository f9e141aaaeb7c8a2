"""`planner plan --batch`: a request a line in, a plan or a problem a line out, in the same order."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from planner.client import Planner
from planner.errors import PlannerError, StoreUnavailable, UnreadableInput
from planner.surfaces.cli import DONE, SOME_FAILED
from planner.surfaces.cli.output import console, emit_json, emit_problem, messages
from planner.surfaces.cli.requests import from_line

STDIN = "-"


def run(planner: Planner, file: str, defaults: Mapping[str, Any]) -> int:
    """Plan each line, and print each result as soon as it is there. Returns the exit code.

    A request that fails is a problem object with its `line`, and the rest goes on. Raises UnreadableInput,
    and StoreUnavailable where the database has gone: every further line would fail as well.
    """
    code = DONE
    with _opened(file) as lines, _progress() as advance:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                emit_json(planner.plan(from_line(line, number, defaults)).to_dict())
            except StoreUnavailable:
                raise
            except PlannerError as error:
                emit_problem({**error.to_dict(), "line": number}, as_json=True, err=False)
                code = SOME_FAILED
            sys.stdout.flush()
            advance()
    return code


def _opened(file: str) -> AbstractContextManager[Iterable[bytes]]:
    if file == STDIN:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except (OSError, ValueError) as error:
        raise UnreadableInput(f"{file!r} cannot be read: {getattr(error, 'strerror', error)}") from None


@contextmanager
def _progress() -> Iterator[Any]:
    """Count the lines that are done on a terminal, where their results do not go to it as well."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = console.is_terminal or not messages.is_terminal
    with Progress(*columns, console=messages, transient=True, disable=hidden) as shown:
        task = shown.add_task("", total=None)
        yield lambda: shown.advance(task)
