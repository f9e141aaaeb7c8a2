"""`planner context`: a question, and the text that a model reads for it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from planner.surfaces.cli.asking import asking
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.deliver import MaxFrac, Neighbours, OnMisfit, Unit, show
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, Scope


@asking
def context(
    scope: Scope,
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="What is asked.", show_default=False)
    ] = None,
    *,
    unit: Unit = None,
    fields: dict[str, Any],
    neighbours: Neighbours = 1,
    on_misfit: OnMisfit = None,
    max_frac: MaxFrac = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Plan the evidence for a question and print it as the text that a model reads, within --budget tokens.

    The plan is kept, and --json names it. Where nothing fits, exit code 4 and a budget that suffices.

    Example: planner context notes "What did we decide about retries?" --unit auto --budget 4000
    """
    how: dict[str, Any] = {"unit": unit, "neighbours": neighbours, "on_misfit": on_misfit}
    with opened(config, overrides, database_url, data_dir) as planner:
        made = planner.context(scope, question, **how, max_frac=max_frac, **fields)
    show(made, as_json=as_json)
