"""`planner verify`: whether what is stored is what was written."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    PlanArgument,
    Scope,
)
from planner.surfaces.cli.output import console, emit_json, visible
from planner.trace.verify import Fault

app = typer.Typer(
    help="""
    Examine a stored plan or a scope's ledger against their hashes. Exit code 1 where a row was changed.

    Example: planner verify ledger notes
    """,
    **SETTINGS,
)


@app.command("plan")
def verify_plan(
    plan: PlanArgument,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Hash a stored plan's rows again and, where not erased, the source bytes beneath them.

    Every row that is not as it was written is named. Exit code 1 where there is one.

    Example: planner verify plan notes:0190f5a2-7c1e-7a53-8000-0123456789ab
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.verify_plan(plan)
    if as_json:
        emit_json(found.to_dict())
    else:
        erased = f", {found.erased} of them erased" if found.erased else ""
        _show(found.faults, f"plan_hash {found.plan_hash}", f"{found.candidates} candidates{erased}")
    return DONE if found.ok else FAILED


@app.command("ledger")
def verify_ledger(
    scope: Scope,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Follow the hash chain of a scope's ledger from its first entry.

    A changed, missing or inserted entry is named. The hash of the newest, kept elsewhere, proves all before
    it: a chain that was written anew from some entry on ends in another.

    Example: planner verify ledger notes --json
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.verify_ledger(scope)
    if as_json:
        emit_json(found.to_dict())
    else:
        _show(found.faults, f"newest entry_hash {found.head}", f"{found.entries} entries")
    return DONE if found.ok else FAILED


def _show(faults: Sequence[Fault], proof: str, examined: str) -> None:
    for fault in faults:
        console.print(visible(str(fault)), soft_wrap=True)
    wrong = "as written" if not faults else f"{len(faults)} not as written"
    console.print(f"{examined}: {wrong}", soft_wrap=True)
    console.print(proof, soft_wrap=True)
