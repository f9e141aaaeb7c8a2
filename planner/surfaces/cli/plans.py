"""`planner plans`: what was asked of a scope, newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table

from planner.errors import RequestError
from planner.pipeline.plans import MAX_PLANS, PlanPage
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, Scope, plain
from planner.surfaces.cli.output import console, emit_json, emit_table, excerpt, visible

QUESTION = 60
"""The characters of a question that are shown."""

Moment = Annotated[str | None, typer.Option(metavar="TIME", help="ISO 8601, as 2026-01-31T00:00:00Z.")]


def plans(
    scope: Scope,
    *,
    after: Annotated[
        str | None, typer.Option(callback=plain, metavar="ID", help="Begin beyond this plan.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_PLANS, help="Plans on the page.")] = 50,
    outcome: Annotated[str | None, typer.Option(help="planned, refused or failed.")] = None,
    since: Moment = None,
    until: Moment = None,
    text: Annotated[str | None, typer.Option(callback=plain, help="What the question holds.")] = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the plans of a scope, newest first, a page at a time.

    For example:

        planner plans notes --outcome refused

        planner plans notes --text retries --since 2026-01-31T00:00:00Z --json
    """
    bounds = {"since": _time(since, "since"), "until": _time(until, "until")}
    with opened(config, overrides, database_url, data_dir) as planner:
        page = planner.plans(scope, after=after, limit=limit, outcome=outcome, text=text, **bounds)
    if as_json:
        emit_json(page.to_dict())
    elif page.plans:
        show(page)
    else:
        console.print("no plan; `planner plan SCOPE QUESTION` makes one", soft_wrap=True)


def show(page: PlanPage) -> None:
    """Print a page as a table, and how to have the next."""
    table = Table(box=None)
    table.add_column("plan", no_wrap=True)
    for name in ("made", "outcome"):
        table.add_column(name, overflow="fold")
    for name in ("used", "spans", "ms"):
        table.add_column(name, justify="right")
    table.add_column("question", overflow="fold")
    for plan in page.plans:
        spans = f"{plan.selected}/{plan.candidates}"
        figures = (f"{plan.used}/{plan.budget}", spans, f"{plan.took_ms:.0f}")
        made = plan.created_at.isoformat(timespec="seconds")
        asked = excerpt(plan.question or "", QUESTION)
        table.add_row(str(plan.ref), made, plan.outcome, *figures, asked)
    emit_table(table)
    if page.next_after is not None:
        console.print(f"more: --after {visible(page.next_after)}", soft_wrap=True)


def _time(text: str | None, name: str) -> datetime | None:
    """Read a time. Raises RequestError."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise RequestError(
            f"{name} = {text!r}: write an ISO 8601 time with its offset, as 2026-01-31T00:00:00Z", field=name
        ) from None
