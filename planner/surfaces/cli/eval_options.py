"""What the commands of `planner eval` share: corpora and lists on the command line, files, a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from planner.evaluation.loading import Progress
from planner.evaluation.report import Report, encoded
from planner.surfaces.cli.output import emit_text, messages, visible
from planner.types import Unit

Case = TypeVar("Case")
Number = TypeVar("Number", int, float)

STDOUT = "-"
UNITS: tuple[Unit, ...] = get_args(Unit)

Corpora = Annotated[
    list[Path],
    typer.Argument(
        metavar="CORPUS_DIR…", help="Folders with sources.jsonl and questions.jsonl.", show_default=False
    ),
]
Budgets = Annotated[str, typer.Option(help="What plans and bundles may hold, in tokens.")]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the report to a file; - is stdout.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Ask only the first N questions.")]

DEFAULT_BUDGETS = "512,1024,2048,4096,6000"


def budgets_of(text: str) -> tuple[int, ...]:
    """Return a list of budgets. Raises BadParameter."""
    tokens = _numbers(text, int, "tokens", "--budgets")
    if min(tokens) < 1 or len(set(tokens)) < len(tokens):
        raise typer.BadParameter(f"{text!r}: different budgets of 1 token or more", param_hint="--budgets")
    return tokens


def shares_of(text: str, option: str) -> tuple[float, ...]:
    """Return a list of shares above 0, up to 1. Raises BadParameter."""
    shares = _numbers(text, float, "shares", option)
    if not all(0 < share <= 1 for share in shares) or len(set(shares)) < len(shares):
        raise typer.BadParameter(f"{text!r}: different shares above 0, up to 1", param_hint=option)
    return shares


def units_of(text: str, option: str) -> tuple[Unit, ...]:
    """Return the units to deliver by, in their own order. Raises BadParameter."""
    if text == "none":
        return ()
    names = UNITS if text == "all" else tuple(part.strip() for part in text.split(","))
    for name in names:
        if name not in UNITS:
            known = ", ".join((*UNITS, "all", "none"))
            raise typer.BadParameter(f"{name!r} is not one of {known}", param_hint=option)
    return tuple(unit for unit in UNITS if unit in names)


def report_each(
    cases: Iterable[Case],
    measured: Callable[[Case, Progress], Sequence[Report]],
    show: Callable[[Report], None],
    json_file: str | None,
) -> None:
    """Measure one case after another; print each when it is there, and write all so far to the file."""
    reports: list[Report] = []
    for case in cases:
        with _progress_bar() as progress:
            made = measured(case, progress)
        reports += made
        if json_file == STDOUT:
            continue
        for report in made:
            show(report)
        if json_file is not None:
            Path(json_file).write_text(encoded(reports) + "\n", encoding="utf-8")
    if json_file == STDOUT:
        emit_text(encoded(reports))


def refuse_unwritable(file: str | None, option: str = "--json") -> None:
    """Refuse before the work what could not be written after it; leave no file. Raises BadParameter."""
    if file in (None, STDOUT):
        return
    path = Path(str(file))
    try:
        is_there = path.exists()
        with path.open("ab"):
            pass
        if not is_there:
            path.unlink()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise typer.BadParameter(f"{file!r} cannot be written: {reason}", param_hint=option) from None


@contextmanager
def _progress_bar() -> Iterator[Progress]:
    """Show what is being done, on a terminal only."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Bar(
        *columns, TimeElapsedColumn(), console=messages, transient=True, disable=not messages.is_terminal
    ) as shown:
        task = shown.add_task("", total=None)

        def done(stage: str, at: int, total: int) -> None:
            shown.update(task, description=visible(stage), completed=at, total=total)

        yield done


def _numbers(text: str, kind: Callable[[str], Number], what: str, option: str) -> tuple[Number, ...]:
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no list of {what}", param_hint=option) from None
