"""`planner diff`: what entered, left or moved between two plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides
from planner.surfaces.cli.output import console, emit_json, emit_table, visible
from planner.trace.diff import Changed, Diff


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A plan, as <scope>:<plan_id>.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another of its scope.", show_default=False)],
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say what entered, left or moved from one plan to another of its scope, and why.

    A reason is the stage at which a span fell in the plan that lacks it, and the figures that differ;
    `planner why` tells more of one that is absent from the pool.

    For example:

        planner diff notes:0190f5a2-7c1e-7a53-8000-0123456789ab notes:0190f5a3-11aa-7d02-9000-0123456789ab
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.diff(a, b)
    if as_json:
        emit_json(found.to_dict())
    else:
        show(found)


def show(found: Diff) -> None:
    """Print what differs: the request, the settings, the figures, then span by span."""
    for word, pairs in (("request", found.request), ("setting", found.config), ("figure", found.figures)):
        _show_pairs(word, pairs)
    if found.same_plan:
        console.print("the same plan" if found.same_pool else "the same plan from another pool")
    show_changes(found.changes)


def show_changes(changes: Sequence[Changed]) -> None:
    """Print a table of what entered, left or moved."""
    if not changes:
        return
    table = Table(box=None)
    table.add_column("change")
    table.add_column("span", overflow="fold")
    for name in ("place", "score", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for change in changes:
        places = [None if place is None else place + 1 for place in change.place]
        scores = [None if score is None else f"{score:.4f}" for score in change.score]
        figures = (_pair(places), _pair(scores), _pair(change.tokens))
        reasons = ", ".join(reason.replace("_", " ") for reason in change.reasons)
        table.add_row(change.change.value, visible(str(change.ref)), *figures, reasons)
    emit_table(table)


def _show_pairs(word: str, pairs: Mapping[str, tuple[Any, Any]]) -> None:
    for name, (was, now) in pairs.items():
        console.print(visible(f"{word} {name}: {was}, then {now}"), soft_wrap=True)


def _pair(pair: Sequence[object]) -> str:
    was, now = ("–" if value is None else str(value) for value in pair)
    return was if was == now else f"{was} → {now}"
