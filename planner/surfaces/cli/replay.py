"""`planner replay`: a stored plan, decided again."""

from __future__ import annotations

from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    PlanArgument,
)
from planner.surfaces.cli.output import console, emit_json


def replay(
    plan: PlanArgument,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Decide a stored plan again from its candidates, and compare every figure.

    The hashes must be the same as well. Fails, naming the first difference, where anything differs; works
    after erasure too.

    Example: planner replay notes:0190f5a2-7c1e-7a53-8000-0123456789ab
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        same = planner.replay(plan)
    if as_json:
        emit_json(same.to_dict())
        return
    console.print(f"identical: {same.selected} of {same.candidates} candidates selected", soft_wrap=True)
    console.print(f"plan_hash {same.plan_hash}", soft_wrap=True)
    console.print(f"pool_hash {same.pool_hash}", soft_wrap=True)
