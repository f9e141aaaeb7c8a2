"""`planner trace`: keeping the trace at a size."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.confirm import Yes, confirm
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.durations import duration
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides
from planner.surfaces.cli.output import console, emit_json

app = typer.Typer(
    help="""
    Delete what plans left behind and nobody asks about any more.

    Example: planner trace prune --older-than 30d --yes
    """,
    **SETTINGS,
)


@app.callback()
def trace() -> None:
    """Keep `prune` a command of its own, though there is no other."""


@app.command()
def prune(
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="30d, 12h …: what was made before that.", show_default=False)
    ],
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="Only of this scope; default: of all.")
    ] = None,
    yes: Yes = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete stored plans that are older than an age, with their pools and deliveries, in batches.

    They can be shown, explained and replayed no more. Sources, graph and ledger are not touched.

    Example: planner trace prune --older-than 30d --scope notes --yes
    """
    age = duration(older_than)
    with opened(config, overrides, database_url, data_dir) as planner:
        before = planner.engine.clock() - age
        found = planner.prunable_trace(before, scope)
        if found.plans or found.deliveries:
            of = f" of {scope}" if scope else " of all scopes"
            confirm(f"{found.plans} plans and {found.deliveries} deliveries{of} would be deleted", yes=yes)
        gone = planner.prune_trace(before, scope)
    if as_json:
        emit_json(gone.to_dict())
        return
    pools = f"{gone.candidates} candidates and {gone.nodes} nodes"
    console.print(f"deleted {gone.plans} plans with {pools}, {gone.deliveries} deliveries", soft_wrap=True)
    if gone.plans or gone.deliveries:
        advice = f"autovacuum frees their space in time; at once, as planner_owner: {gone.vacuum}"
        console.print(advice, soft_wrap=True)
