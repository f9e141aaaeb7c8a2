"""`planner scope`: the tenants, their indexes, and their end."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.confirm import Yes, confirm
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, Scope
from planner.surfaces.cli.output import console, emit_json, emit_table, visible
from planner.surfaces.cli.progress import progress

app = typer.Typer(
    help="""
    List scopes, build a scope's indexes, or delete a scope.

    Examples:

        planner scope list --json

        planner scope delete notes
    """,
    **SETTINGS,
)


@app.command("list")
def list_scopes(
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List every scope with its size, its newest transaction and its embedding model."""
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.scopes()
    if as_json:
        emit_json({"scopes": [scope.to_dict() for scope in found]})
        return
    table = Table(box=None)
    table.add_column("scope", overflow="fold")
    for name in ("sources", "live nodes", "last tx"):
        table.add_column(name, justify="right")
    table.add_column("embedding model", overflow="fold")
    for scope in found:
        model = f"{scope.model} {scope.model_revision} ({scope.dimensions})" if scope.model else "none"
        figures = (str(scope.sources), str(scope.live_nodes), str(scope.last_tx))
        table.add_row(scope.name, *figures, visible(model))
    if found:
        emit_table(table)
    else:
        console.print("no scope yet; `planner ingest SCOPE PATH` makes one", soft_wrap=True)


@app.command()
def index(
    scope: Scope,
    lexical: Annotated[
        bool, typer.Option("--lexical", help="The lexical index alone: what a scope lacks after an upgrade.")
    ] = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Build the scope's indexes, without locking out its writers; where one is there, do nothing.

    The lexical index is kept by every ingest; only a scope that is older than it has to be indexed once. A
    run that was interrupted is continued by the next. The vector index serves scopes of more than
    `exact_limit` live nodes; smaller ones are searched exactly.

    For example:

        planner scope index notes

        planner scope index notes --lexical
    """
    with opened(config, overrides, database_url, data_dir) as planner, progress("nodes") as shown:
        made = planner.build_lexical_index(scope, progress=shown)
        built = None if lexical else planner.build_index(scope)
    if as_json:
        emit_json({**(built.to_dict() if built else {}), "lexical": made.to_dict()})
        return
    if made.tx is None:
        console.print(f"the lexical index of {scope} is there already", soft_wrap=True)
    else:
        console.print(
            f"the lexical index of {scope} is there from transaction {made.tx} on: {made.added} texts added, "
            f"{made.mentions} mentions of titles found",
            soft_wrap=True,
        )
    if built is not None:
        done = "built" if built.built else "is already there"
        console.print(f"{built.name} {done}; {built.live_nodes} live nodes", soft_wrap=True)


@app.command()
def delete(
    scope: Scope,
    yes: Yes = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete a scope with everything in it: sources, history, plans, deliveries, tokens, vector indexes.

    On a terminal the scope's name is to be typed.

    Example: planner scope delete notes --yes
    """
    confirm(f"the scope {scope} is deleted, with its history and all its plans", yes=yes, name=scope)
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.delete_scope(scope)
    if as_json:
        emit_json(found.to_dict())
        return
    console.print(
        f"deleted {found.scope}: {found.sources} sources, {found.versions} versions, {found.nodes} versions "
        f"of nodes, {found.plans} plans, {found.tokens} tokens, {len(found.indexes)} indexes",
        soft_wrap=True,
    )
