"""`planner replan`: a stored plan, made again from the store."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.diff import show_changes
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    PlanArgument,
)
from planner.surfaces.cli.output import console, emit_indented, emit_json, visible
from planner.trace.drift import Drift, Replan


def replan(
    plan: PlanArgument,
    keep: Annotated[
        bool, typer.Option("--keep", help="Persist the new plan; else nothing is written.")
    ] = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Make a stored plan again from the store as of its transaction, and compare the hashes.

    The request and the configuration are those on record. What differs is classed, with the rows that show
    it: source, graph, embedding, index, policy (today's settings would decide otherwise), tokenizer, code.
    Exit code 1 where anything drifted.

    Example: planner replan notes:0190f5a2-7c1e-7a53-8000-0123456789ab --json
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.replan(plan, keep=keep)
    if as_json:
        emit_json(found.to_dict())
    else:
        show(found)
    return FAILED if found.drifts else DONE


def show(found: Replan) -> None:
    """Print the verdict, the evidence by class, and what that did to the selection."""
    console.print("identical" if found.identical else "not the same plan any more", soft_wrap=True)
    names = ("plan_hash", "pool_hash")
    for name, was, now in zip(names, found.hashes, found.hashes_again, strict=True):
        again = "" if was == now else f", now {now or 'none'}"
        console.print(f"{name} {was}{again}", soft_wrap=True)
    if found.error is not None:
        console.print(visible(str(found.error["detail"])), soft_wrap=True)
    for drift in found.drifts:
        _show_drift("drift", drift)
    for drift in found.notes:
        _show_drift("without effect", drift)
    show_changes(found.changes)
    if found.again is not None:
        console.print(f"kept as {found.again}", soft_wrap=True)


def _show_drift(word: str, drift: Drift) -> None:
    rows = "1 row" if drift.rows == 1 else f"{drift.rows} rows"
    console.print(Text.assemble(f"{word}: ", (drift.drift.value, "bold"), f", {rows}"), soft_wrap=True)
    for row in drift.evidence:
        emit_indented(visible(row), 4)
    if drift.rows > len(drift.evidence):
        console.print(f"    and {drift.rows - len(drift.evidence)} more")
