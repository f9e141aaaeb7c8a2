"""`planner ingest`: files, folders, globs and standard input become sources of a scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from planner.client import Progress as Report
from planner.reading import InputFile, discover
from planner.surfaces.cli import DONE, SOME_FAILED
from planner.surfaces.cli.database import ACTOR, opened
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    Scope,
    pairs,
    plain,
)
from planner.surfaces.cli.output import console, emit_json, emit_table, messages, visible
from planner.types import TRUST_ORDER, IngestReport

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH…", help="Files, folders, globs, or - for standard input.", show_default=False
    ),
]
Attributes = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="An attribute of every source, as text; repeatable."),
]
Title = Annotated[str | None, typer.Option(callback=plain, help="Title, instead of the document's own.")]
Sync = Annotated[
    bool, typer.Option("--sync", help="Withdraw the sources of these folders whose files are gone.")
]
TrustClass = Annotated[str, typer.Option(help=f"Trust class: {', '.join(TRUST_ORDER)}.")]
Actor = Annotated[str, typer.Option(callback=plain, help="Who ingests, for the ledger.")]


def ingest(
    scope: Scope,
    paths: Paths,
    *,
    attr: Attributes = None,
    title: Title = None,
    sync: Sync = False,
    trust: TrustClass = "external",
    actor: Actor = ACTOR,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Ingest files, folders, globs or standard input into a scope.

    Each source is a transaction of its own; what has not changed is not written again. A file that cannot
    be read is named with the reason, the rest is ingested, and the exit code is 3.

    With --sync a source that came from a folder of the same name, from a file that is no longer there, is
    withdrawn: its nodes end, its history stays. A file that could not be read withdraws nothing, nor does a
    folder that is empty or cannot be read.

    For example:

        planner ingest notes docs/ 'talks/**/*.md' --attr team=core --trust internal

        planner ingest notes docs/ --sync

        pg_dump --schema-only mydb | planner ingest schemas - --title "mydb's schema"
    """
    if trust not in TRUST_ORDER:
        raise typer.BadParameter(f"{trust!r} is not one of {', '.join(TRUST_ORDER)}", param_hint="--trust")
    if not actor:
        raise typer.BadParameter("it is empty", param_hint="--actor")
    attributes = pairs(attr, "--attr")
    with (
        opened(config, overrides, database_url, data_dir, actor=actor) as planner,
        _progress(paths) as progress,
    ):
        report = planner.ingest(
            scope, paths, title=title, trust=trust, attributes=attributes, progress=progress, sync=sync
        )
    if as_json:
        emit_json(report.to_dict())
    else:
        show(report)
    return SOME_FAILED if report.failures else DONE


def show(report: IngestReport) -> None:
    """Print what became of each source, each failure with its reason, and the totals."""
    if report.sources:
        table = Table(box=None)
        table.add_column("source", overflow="fold")
        table.add_column("status")
        table.add_column("version", justify="right")
        table.add_column("spans", justify="right")
        for source in report.sources:
            table.add_row(visible(source.source_id), source.status, str(source.version_tx), str(source.spans))
        emit_table(table)
    for failure in report.failures:
        messages.print(f"not ingested: {visible(failure.path)}: {visible(failure.message)}", soft_wrap=True)
    counts = dict(report.counts)
    common = counts.pop("titles_skipped", 0)
    written = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)
    sources, failed = len(report.sources), len(report.failures)
    console.print(
        f"{sources} sources in {report.scope}, {failed} failed; wrote {written or 'nothing'}", soft_wrap=True
    )
    if common:
        console.print(f"{common} titles are too common to be looked for in older texts", soft_wrap=True)


@contextmanager
def _progress(paths: Sequence[str]) -> Iterator[Report | None]:
    """Show how many files are done, on a terminal only."""
    if not messages.is_terminal:
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=messages, transient=True) as shown:
        task = shown.add_task("", total=sum(1 for _ in discover(paths)))

        def done(file: InputFile) -> None:
            shown.update(task, advance=1, description=visible(file.source_id))

        yield done
