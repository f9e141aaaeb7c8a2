"""`planner eval sweep`: what caps and units cost and buy, as tables of small bars."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.evaluation.corpora import read_corpus
from planner.evaluation.sweep import Grid
from planner.evaluation.sweep import sweep as swept
from planner.surfaces.cli.eval_options import (
    DEFAULT_BUDGETS,
    Budgets,
    Corpora,
    JsonFile,
    Limit,
    budgets_of,
    refuse_unwritable,
    report_each,
    shares_of,
    units_of,
)
from planner.surfaces.cli.eval_tables import show_sweep
from planner.surfaces.cli.options import ConfigFile, DatabaseUrl, DataDir, Overrides, load_settings
from planner.surfaces.cli.server import reached


def sweep(
    corpora: Corpora,
    *,
    max_fracs: Annotated[str, typer.Option(help="Shares of a plan that one source may take.")] = (
        "0.2,0.3,0.4,0.6,0.8,1"
    ),
    units: Annotated[
        str, typer.Option(help="Deliver by chunk, window, record, auto, several, all, none.")
    ] = ("all"),
    chunk_shares: Annotated[str, typer.Option(help="Shares of a budget that `auto` plans with.")] = (
        "0.3,0.5,0.7"
    ),
    budgets: Budgets = DEFAULT_BUDGETS,
    json_file: JsonFile = None,
    limit: Limit = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Measure what is selected under each cap, and what is delivered by each unit, at each budget.

    Each corpus is ingested once into a scratch database, and each question is asked once: its pool is packed
    under every cap, and what it selects under the cap in force is delivered by every unit.

    Example: planner eval sweep corpora/mine --max-fracs 0.4,1 --units chunk,auto --set score_model=v2
    """
    settings = load_settings(config, overrides, database_url=database_url, data_dir=data_dir).settings
    grid = Grid(
        budgets_of(budgets),
        shares_of(max_fracs, "--max-fracs"),
        units_of(units, "--units"),
        shares_of(chunk_shares, "--chunk-shares"),
    )
    read = [read_corpus(folder) for folder in corpora]
    refuse_unwritable(json_file)
    with reached(settings) as url:
        report_each(
            read,
            lambda corpus, progress: [swept(corpus, url, settings, grid, limit=limit, progress=progress)],
            show_sweep,
            json_file,
        )
