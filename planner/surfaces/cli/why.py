"""`planner why`: what became of something in a plan."""

from __future__ import annotations

from rich.text import Text

from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    PlanArgument,
    What,
)
from planner.surfaces.cli.output import console, emit_indented, emit_json, visible
from planner.trace.why import Why


def why(
    plan: PlanArgument,
    what: What,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say at which stage of a plan something fell, or that it was selected.

    Something is a span, a node, a source or a phrase. For what the budget turned away it names a budget, and
    a share of one source, that would have sufficed.

    For example:

        planner why notes:0190f5a2-7c1e-7a53-8000-0123456789ab "retry three times"

        planner why notes:0190f5a2-7c1e-7a53-8000-0123456789ab design.md@4:120-480
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.why(plan, what)
    if as_json:
        emit_json(found.to_dict())
    else:
        show(found)


def show(found: Why) -> None:
    """Print the answer, and what became of each span that is meant."""
    if [answer.sentence for answer in found.answers] != [found.sentence]:
        console.print(visible(found.sentence), soft_wrap=True)
    for answer in found.answers:
        name = answer.ref or answer.fate.node_id or found.what
        stage = answer.stage.replace("_", " ")
        console.print(Text.assemble((visible(str(name)), "bold"), f"  {stage}"), soft_wrap=True)
        emit_indented(visible(answer.sentence), 4)
    if found.more:
        console.print(f"and {found.more} more")
