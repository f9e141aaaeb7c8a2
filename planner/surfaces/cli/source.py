"""`planner source`: what a scope holds, and what of it stays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.table import Table

from planner.pipeline.browse import MAX_PAGE, SourceDetail
from planner.pipeline.erase import Erased
from planner.pipeline.retention import Reason, SourceVersion
from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.confirm import Yes, confirm
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, Scope, plain
from planner.surfaces.cli.output import console, emit_json, emit_table, visible

KEPT: Mapping[Reason, str] = {
    "newest": "among the newest",
    "current": "current nodes derive from it",
    "derived": "a cache was made from it",
    "cited": "a kept plan selected from it (--even-cited)",
}

SourceId = Annotated[
    str, typer.Argument(metavar="SOURCE", help="The source's id.", callback=plain, show_default=False)
]

app = typer.Typer(
    help="""
    List the sources of a scope, show one, prune its old versions, or erase it.

    Examples:

        planner source list notes --limit 20

        planner source show notes design.md --versions

        planner source prune notes design.md --keep-versions 3

        planner source erase notes design.md --scrub
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
        state = "(erased)" if source.erased else "(withdrawn) " if source.withdrawn else ""
        title = state + visible(source.title or "")
        table.add_row(visible(source.source_id), *figures, source.trust, title)
    emit_table(table)
    if page.next_after is not None:
        console.print(f"more: --after '{visible(page.next_after)}'", soft_wrap=True)


@app.command()
def show(
    scope: Scope,
    source: SourceId,
    versions: Annotated[bool, typer.Option("--versions", help="List every version instead.")] = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show a source: its newest version, what is known about it, and its spans; or all its versions.

    Example: planner source show notes design.md --json
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        if versions:
            show_versions(scope, source, planner.versions(scope, source), as_json=as_json)
            return
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


@app.command()
def prune(
    scope: Scope,
    source: SourceId,
    keep_versions: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="How many of the newest stay.", show_default=False),
    ],
    even_cited: Annotated[
        bool, typer.Option("--even-cited", help="Versions that kept plans selected from too.")
    ] = False,
    yes: Yes = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete the old versions of a source, and say which ones stay and why.

    A version from which a current node or a cache derives always stays; one from which a kept plan selected
    stays unless --even-cited. What was appended to a version stays or goes with it.

    Example: planner source prune notes design.md --keep-versions 3
    """
    confirm(f"the old versions of {source} in {scope} go, and with them what plans as of then need", yes=yes)
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.prune_versions(scope, source, keep_versions=keep_versions, even_cited=even_cited)
    if as_json:
        emit_json(found.to_dict())
        return
    for version_tx, reason in found.kept:
        console.print(f"kept {version_tx}: {KEPT[reason]}", soft_wrap=True)
    deleted = ", ".join(map(str, found.deleted))
    console.print(f"deleted {deleted}" if deleted else "nothing to delete", soft_wrap=True)


@app.command()
def erase(
    scope: Scope,
    source: SourceId,
    scrub: Annotated[
        bool, typer.Option("--scrub", help="Write the tables anew, so that not a byte stays in them.")
    ] = False,
    yes: Yes = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Erase a source: the texts of all its versions, their vectors, and the caches made from it.

    What plans decided stays, and can be replayed. --scrub locks each table while it is copied; where another
    transaction can still see what was erased, it says so with exit code 1: run it again when that has ended.
    Write-ahead logs and back-ups are beyond it (docs/operations.md).

    Example: planner source erase notes design.md --scrub
    """
    confirm(f"{source} in {scope} is erased, with every version of it and the caches made from it", yes=yes)
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.erase(scope, source, scrub=scrub)
    if as_json:
        emit_json(found.to_dict())
    else:
        _show_erased(found)
    return FAILED if found.held_back else DONE


def show_versions(scope: str, source: str, found: Sequence[SourceVersion], *, as_json: bool) -> None:
    """Print the versions of a source, oldest first."""
    if as_json:
        versions = [version.to_dict() for version in found]
        emit_json({"scope": scope, "source_id": source, "versions": versions})
        return
    table = Table(box=None)
    for name in ("version", "written", "by", "spans", "bytes", "cited", "state"):
        table.add_column(name, justify="right" if name in ("version", "spans", "bytes", "cited") else "left")
    table.add_column("title", overflow="fold")
    for version in found:
        states = {
            "erased": version.erased_tx,
            "withdrawn": version.withdrawn_tx,
            f"extends {version.extends_tx}": version.extends_tx,
            "current": version.current,
        }
        table.add_row(
            str(version.version_tx),
            version.recorded_at.isoformat(timespec="seconds"),
            visible(f"{version.action}, {version.actor}"),
            *(str(number) for number in (version.spans, version.byte_length, version.cited)),
            ", ".join(name for name, holds in states.items() if holds),
            visible(version.title or ""),
        )
    emit_table(table)


def _show_erased(found: Erased) -> None:
    if found.tx is None:
        console.print(f"{visible(found.source)} was erased before", soft_wrap=True)
    else:
        names = [visible(name) for name in found.sources if name != found.source]
        caches = f"; caches: {', '.join(names)}" if names else ""
        console.print(
            f"erased {visible(found.source)} at transaction {found.tx}: {found.versions} versions, "
            f"{found.nodes} versions of nodes, {found.vectors} vectors{caches}",
            soft_wrap=True,
        )
    if found.held_back:
        console.print(
            f"{found.held_back} dead rows are still seen by another transaction: end it, then run this again",
            soft_wrap=True,
        )
    elif found.held_back is not None:
        console.print("the tables were written anew")


def _spans(source: SourceDetail) -> Table:
    table = Table(box=None)
    table.add_column("span", overflow="fold")
    table.add_column("kind")
    table.add_column("bytes", justify="right")
    table.add_column("under", overflow="fold")
    for held in source.spans:
        span = held.span
        under = span.speaker or " › ".join(span.heading_path)
        table.add_row(visible(str(held.ref)), span.kind, str(span.end - span.start), visible(under))
    return table
