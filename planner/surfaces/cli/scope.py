"""`planner scope`: the tenants, their vector indexes, and their end."""

from __future__ import annotations

import typer
from rich.table import Table

from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.confirm import Yes, confirm
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, Scope
from planner.surfaces.cli.output import console, emit_json, emit_table, visible

app = typer.Typer(
    help="""
    List scopes, build a scope's vector index, or delete a scope.

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
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Build the scope's own vector index, without locking out its writers; where it is there, do nothing.

    It serves scopes of more than `exact_limit` live nodes; smaller ones are searched exactly.

    Example: planner scope index notes
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        built = planner.build_index(scope)
    if as_json:
        emit_json(built.to_dict())
        return
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
