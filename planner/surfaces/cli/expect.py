"""`planner expect`: what plans should hold, kept and checked at the newest state."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.database import ACTOR, opened
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    PlanArgument,
    Scope,
    What,
    plain,
)
from planner.surfaces.cli.output import console, emit_indented, emit_json, emit_table, visible
from planner.trace.expectation import Expected

ADD = "add"


class Expectations(TyperGroup):
    """A group whose `add` need not be said: no plan is called as a command is."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `add` before what begins with no command."""
        asks_for_help = args and args[0] in ctx.help_option_names
        if args and not asks_for_help and args[0] not in self.commands:
            args = [ADD, *args]
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    help="""
    Keep what a plan should hold, and check all of it at the newest state.

    `planner expect PLAN WHAT` adds an expectation.

    Examples:

        planner expect notes:0190f5a2-7c1e-7a53-8000-0123456789ab "retry three times" --note "asked in May"

        planner expect check
    """,
    cls=Expectations,
    **SETTINGS,
)


@app.command(ADD)
def add(
    plan: PlanArgument,
    what: What,
    *,
    note: Annotated[str | None, typer.Option(callback=plain, help="Why, in your words.")] = None,
    actor: Annotated[str, typer.Option(callback=plain, help="Who expects it.")] = ACTOR,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Keep that the question of a plan is to bring a span, a node, a source or a phrase.

    The question is kept with its filters and its budget, not with the state it was asked of. What is expected
    already is not added again.

    Example: planner expect notes:0190f5a2-7c1e-7a53-8000-0123456789ab "retry three times"
    """
    with opened(config, overrides, database_url, data_dir, actor=actor) as planner:
        kept = planner.expect(plan, what, note)
    if as_json:
        emit_json(kept.to_dict())
    else:
        stage = kept.stage.replace("_", " ")
        console.print(f"{kept.ref}: expected; in {kept.plan} it was: {stage}", soft_wrap=True)


@app.command("list")
def list_expectations(
    scope: Scope,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List what is expected in a scope, oldest first.

    Example: planner expect list notes
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.expectations(scope)
    if as_json:
        emit_json({"scope": scope, "expectations": [one.to_dict() for one in found]})
        return
    table = Table(box=None)
    for name in ("expectation", "question", "what", "note"):
        table.add_column(name, overflow="fold")
    for one in found:
        question = str(one.request.get("text", "(no text)"))
        table.add_row(str(one.ref), visible(question), visible(one.what), visible(one.note or ""))
    if found:
        emit_table(table)
    else:
        console.print("nothing is expected yet; `planner expect PLAN WHAT` adds to it", soft_wrap=True)


@app.command()
def remove(
    expectation: Annotated[
        str, typer.Argument(metavar="EXPECTATION", help="As listed, <scope>:<id>.", show_default=False)
    ],
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Forget an expectation.

    Example: planner expect remove notes:0123456789abcdef
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        planner.remove_expectation(expectation)
    if as_json:
        emit_json({"removed": expectation})
    else:
        console.print(f"removed {expectation}", soft_wrap=True)


@app.command()
def check(
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="Only of this scope; default: of all.")
    ] = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Plan every expectation at the newest state, and say of each that does not hold where it fell.

    The plans are kept: `planner show` and `planner why` tell more. Exit code 1 where an expectation fell.

    Example: planner expect check --scope notes
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        checked = list(planner.check_expectations(scope))
    fell = [one for one in checked if not one.held]
    if as_json:
        emit_json(
            {"checked": len(checked), "fell": len(fell), "expectations": [one.to_dict() for one in checked]}
        )
    else:
        for one in fell:
            _show(one)
        console.print(f"{len(checked) - len(fell)} of {len(checked)} expectations hold", soft_wrap=True)
    return FAILED if fell else DONE


def _show(one: Expected) -> None:
    expectation, stage = one.expectation, one.stage.replace("_", " ")
    line = Text.assemble((str(expectation.ref), "bold"), f"  fell: {stage}")
    console.print(line, soft_wrap=True)
    emit_indented(visible(f"{expectation.request.get('text', '(no text)')} → {expectation.what}"), 4)
    emit_indented(visible(one.sentence), 4)
    if expectation.note:
        emit_indented(visible(f"note: {expectation.note}"), 4)
    if one.plan is not None:
        console.print(f"    planner show {one.plan}", soft_wrap=True)
