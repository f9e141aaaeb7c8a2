"""`planner deliver`: a plan's evidence as the text that a model reads."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from planner.surfaces.cli.asking import Counter
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    PlanArgument,
)
from planner.surfaces.cli.output import emit_json, visible
from planner.types import Delivery

Unit = Annotated[
    str | None,
    typer.Option(
        help="What a hit becomes: chunk, window (with its neighbours), record (the whole source or "
        "conversation), or auto (the largest of them that fits); default: the setting unit."
    ),
]
BundleBudget = Annotated[
    int | None, typer.Option(help="The most tokens of the whole text; default: what the plan was asked for.")
]
Neighbours = Annotated[int, typer.Option(help="Spans on each side of a hit, for a window.")]
OnMisfit = Annotated[
    str | None,
    typer.Option(help="A unit that does not fit: skip or cut; default: cut for record, else skip."),
]
MaxFrac = Annotated[
    float | None, typer.Option(help="The most of the budget that one source may take, above 0 to 1.")
]


def deliver(
    plan: PlanArgument,
    *,
    unit: Unit = None,
    budget: BundleBudget = None,
    counter: Counter = None,
    neighbours: Neighbours = 1,
    on_misfit: OnMisfit = None,
    max_frac: MaxFrac = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print what a plan selected as the text that a model reads, within a budget that counts all of it.

    The text goes to standard output byte for byte; on a terminal its control characters are written out.
    --json prints what is in it, too.

    For example:

        planner deliver notes:0190f5a2-7c1e-7a53-8000-0123456789ab --unit window --neighbours 2

        planner deliver notes:0190f5a2-7c1e-7a53-8000-0123456789ab --unit auto --budget 4000 > bundle.txt
    """
    how: dict[str, Any] = {"unit": unit, "neighbours": neighbours, "on_misfit": on_misfit}
    with opened(config, overrides, database_url, data_dir) as planner:
        made = planner.deliver(plan, **how, budget_tokens=budget, counter=counter, max_frac=max_frac)
    show(made, as_json=as_json)


def show(delivery: Delivery, *, as_json: bool) -> None:
    """Print a bundle verbatim, or all of the delivery as JSON."""
    if as_json:
        emit_json(delivery.to_dict())
    elif sys.stdout.isatty():
        typer.echo(visible(delivery.text, keep="\n\t"))
    else:
        typer.echo(delivery.text.encode(), nl=False)
