"""`planner show`: a stored plan, selected against rejected."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.surfaces.cli import evidence
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    PlanArgument,
)
from planner.surfaces.cli.output import emit_json


def show(
    plan: PlanArgument,
    rejected: Annotated[int, typer.Option(min=0, help="How many rejected spans to list.")] = 20,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show a stored plan: selected against rejected, the budget by source, what was delivered.

    Plans that were refused or failed are shown too. Density is weight by token, the order in which
    plan_model v1 packs; v2 packs by weight.

    Example: planner show notes:0190f5a2-7c1e-7a53-8000-0123456789ab --rejected 50
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found, delivered = planner.load(plan), planner.deliveries(plan)
    if as_json:
        emit_json({**found.to_dict(), "deliveries": [delivery.to_dict() for delivery in delivered]})
        return
    evidence.show_header(found)
    evidence.show_budget(found)
    if found.plan_hash is not None:
        evidence.show_walk(found, rejected)
        evidence.show_counts(found)
        evidence.show_hashes(found)
    evidence.show_deliveries(delivered)
