"""`planner verify`: whether what is stored is what was written, and a quote what was stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

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
    plain,
)
from planner.surfaces.cli.output import console, emit_json, visible
from planner.trace.verify import Fault

app = typer.Typer(
    help="""
    Examine a stored plan, a scope's ledger, or a quote of a plan's evidence.

    Exit code 1 where it is not as it was written, or does not say what is quoted.

    Examples:

        planner verify ledger notes

        planner verify citation notes:0190f5a2-7c1e-7a53-8000-0123456789ab E3 "closes at 2.9 m"
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


@app.command("citation")
def verify_citation(
    plan: PlanArgument,
    evidence: Annotated[
        str,
        typer.Argument(
            metavar="EVIDENCE",
            help="What is cited: E1 is the best that was selected; or a span source@tx:start-end.",
            callback=plain,
            show_default=False,
        ),
    ],
    quote: Annotated[
        str,
        typer.Argument(metavar="QUOTE", help="The words that it says.", callback=plain, show_default=False),
    ],
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Say whether a quote is in the evidence of a plan that it cites. Exit code 1 where it is not.

    Exact, but for the form of accented letters (NFC) and for white space. Derived text supports nothing.

    Example: planner verify citation notes:0190f5a2-7c1e-7a53-8000-0123456789ab E3 "closes at 2.9 m"
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.verify_citation(plan, quote, evidence)
    if as_json:
        emit_json(found.to_dict())
    else:
        console.print(visible(found.sentence), soft_wrap=True)
    return DONE if found.supported else FAILED


def _show(faults: Sequence[Fault], proof: str, examined: str) -> None:
    for fault in faults:
        console.print(visible(str(fault)), soft_wrap=True)
    wrong = "as written" if not faults else f"{len(faults)} not as written"
    console.print(f"{examined}: {wrong}", soft_wrap=True)
    console.print(proof, soft_wrap=True)
