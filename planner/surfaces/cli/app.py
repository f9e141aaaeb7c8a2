"""The commands by name: a command is a function in a module of its own, registered here."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from planner.surfaces.cli import pack
from planner.surfaces.cli.output import emit_text

EXAMPLES = """
Decides which evidence a language model reads, within a budget of tokens, and can say why.

Every command takes --json. Exit codes: 0 done, 1 error, 2 usage, 3 some inputs failed,
4 insufficient evidence or a budget too small.

Examples:

    planner pack candidates.jsonl --budget 2000

    my-retriever "a question" | planner pack --counter openai:o200k_base --json
"""

app = typer.Typer(
    name="planner",
    help=EXAMPLES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        emit_text(f"planner {version('evidence-planner')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Show the help where no command is given."""
    if context.invoked_subcommand is None:
        emit_text(context.get_help())


app.command("pack")(pack.pack)
