"""`planner source`: what a scope holds."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from planner.pipeline.browse import MAX_PAGE, SourceDetail
from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, Scope, plain
from planner.surfaces.cli.output import console, emit_json, emit_table, visible

app = typer.Typer(
    help="""
    List the sources of a scope, or show one.

    Examples:

        planner source list notes --limit 20

        planner source show notes design.md
    """,
    **SETTINGS,
)


@app.command("list")
def list_sources(
    scope: Scope,
    after: Annotated[
        str | None, typer.Option(callback=plain, metavar="ID", help="Begin beyond this source id.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_PAGE, help="Sources on the page.")] = 100,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the sources of a scope, by id, a page at a time."""
    with opened(config, overrides, database_url, data_dir) as planner:
        page = planner.sources(scope, after=after, limit=limit)
    if as_json:
        emit_json(page.to_dict())
        return
    table = Table(box=None)
    table.add_column("source", overflow="fold")
    for name in ("version", "spans", "bytes"):
        table.add_column(name, justify="right")
    table.add_column("trust")
    table.add_column("title", overflow="fold")
    for source in page.sources:
        figures = (str(source.version_tx), str(source.spans), str(source.byte_length))
        title = "(erased)" if source.erased else visible(source.title or "")
        table.add_row(visible(source.source_id), *figures, source.trust, title)
    emit_table(table)
    if page.next_after is not None:
        console.print(f"more: --after '{visible(page.next_after)}'", soft_wrap=True)


@app.command()
def show(
    scope: Scope,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The source's id.", callback=plain, show_default=False)
    ],
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show a source: its newest version, what is known about it, and its spans.

    Example: planner source show notes design.md --json
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.source(scope, source)
    if as_json:
        emit_json(found.to_dict())
        return
    about = Table(box=None, show_header=False)
    about.add_column()
    about.add_column(overflow="fold")
    for name, value in found.to_dict().items():
        if name != "spans" and value is not None:
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            about.add_row(name.replace("_", " "), visible(written))
    emit_table(about)
    emit_table(_spans(found))


def _spans(source: SourceDetail) -> Table:
    table = Table(box=None)
    table.add_column("span", overflow="fold")
    table.add_column("kind")
    table.add_column("bytes", justify="right")
    table.add_column("under", overflow="fold")
    for span in source.spans:
        under = span.speaker or " › ".join(span.heading_path)
        table.add_row(visible(str(source.ref(span))), span.kind, str(span.end - span.start), visible(under))
    return table
