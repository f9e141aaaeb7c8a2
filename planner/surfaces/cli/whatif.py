"""`planner whatif`: what stored plans would have been under another configuration."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from planner.settings import parsed
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.durations import duration
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, pairs
from planner.surfaces.cli.output import console, emit_json, emit_table, visible
from planner.trace.whatif import BUDGET, WhatIf

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="kind_priors (JSON), cache_discount, dedup_overlap, max_frac_per_source, plan_model or budget.",
    ),
]


def whatif(
    changes: Set = None,
    plans: Annotated[
        list[str] | None, typer.Option("--plan", metavar="PLAN", help="A stored plan; repeatable.")
    ] = None,
    scopes: Annotated[
        list[str] | None, typer.Option("--scope", metavar="SCOPE", help="All its plans; repeatable.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="AGE", help="Of scopes, only plans made in the last 7d, 12h …")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many changed plans to list.")] = 20,
    config: ConfigFile = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Decide stored pools again under another configuration.

    Says which plans would have changed, tokens saved, evidence gained and lost. Nothing is recalled, and
    nothing is written. Each plan keeps its own configuration but for what is set;
    --json lists every plan that would have changed.

    For example:

        planner whatif --scope notes --since 7d --set budget=2000 --set dedup_overlap=0.7

        planner whatif --plan notes:0190f5a2-7c1e-7a53-8000-0123456789ab --set 'kind_priors={"heading": 0.2}'
    """
    if since is not None and plans:
        raise typer.BadParameter("--since is about the plans of --scope; named plans are meant whenever made")
    values = {
        key: parsed("default_budget" if key == BUDGET else key, text)
        for key, text in pairs(changes, "--set").items()
    }
    with opened(config, None, database_url, data_dir) as planner:
        found = planner.whatif(
            values,
            plans=plans or (),
            scopes=scopes or (),
            since=None if since is None else duration(since),
        )
    if as_json:
        emit_json(found.to_dict())
    else:
        show(found, limit)


def show(found: WhatIf, limit: int) -> None:
    """Print the sums, and the changed plans, those first whose tokens change most."""
    console.print(f"{len(found.changed)} of {found.plans} plans would have changed", soft_wrap=True)
    saved = found.tokens_saved
    by = f"{saved} saved" if saved >= 0 else f"{-saved} more"
    console.print(f"{found.used} tokens then, {found.would_use} instead: {by}", soft_wrap=True)
    emptied = f"; {found.emptied} plans without any" if found.emptied else ""
    console.print(f"evidence: {found.gained} spans gained, {found.lost} lost{emptied}", soft_wrap=True)
    if not found.changed or not limit:
        return
    table = Table(box=None)
    table.add_column("plan", overflow="fold")
    for name in ("tokens", "instead", "gained", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    by_change = sorted(found.changed, key=lambda plan: -abs(plan.used[0] - plan.used[1]))
    for plan in by_change[:limit]:
        figures = (*plan.used, len(plan.gained), len(plan.lost))
        table.add_row(visible(plan.plan), *map(str, figures))
    emit_table(table)
    if len(by_change) > limit:
        console.print(f"{len(by_change) - limit} more changed (--limit N shows more)")
