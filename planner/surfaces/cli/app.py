"""The commands by name: a command is a module of its own, imported when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from planner.surfaces.cli.output import emit_text

EXAMPLES = """
Decides which evidence a language model reads, within a budget of tokens, and can say why.

Every command takes --json. Exit codes: 0 done, 1 error, 2 usage, 3 some inputs failed,
4 insufficient evidence or a budget too small.

Examples:

    planner demo

    planner ingest notes docs/ --attr team=core

    planner plan notes "What did we decide about retries?" --budget 2000

    planner why notes:PLAN_ID "a phrase, a span, a node or a source"

    planner context notes "What did we decide about retries?" --unit auto --budget 4000

    my-retriever "a question" | planner pack --counter openai:o200k_base --json
"""

COMMANDS: Mapping[str, str] = {
    "demo": "Ingest a small corpus into the embedded server, ask three questions, explain the answers.",
    "ingest": "Ingest files, folders, globs or standard input into a scope.",
    "append": "Append the next turns to a conversation.",
    "derive": "Store a text that was made from spans, such as a summary.",
    "plan": "Plan the evidence for a question within a budget of tokens, and keep the plan.",
    "deliver": "Print what a plan selected as the text that a model reads, within a budget.",
    "context": "Plan the evidence for a question and print it as the text that a model reads.",
    "show": "Show a stored plan: selected against rejected, the budget by source, what was delivered.",
    "why": "Say at which stage of a plan something fell, or that it was selected.",
    "replay": "Decide a stored plan again from its candidates, and compare every figure.",
    "replan": "Make a stored plan again from the store as of its transaction, and compare the hashes.",
    "diff": "Say what entered, left or moved from one plan to another of its scope, and why.",
    "verify": "Examine a stored plan, a scope's ledger, or a quote of a plan's evidence.",
    "whatif": "Decide stored pools again under another configuration.",
    "expect": "Keep what a plan should hold, and check all of it at the newest state.",
    "eval": "Measure how good the evidence is, on corpora whose evidence is labelled.",
    "trace": "Delete what plans left behind and nobody asks about any more.",
    "serve": "Serve the library over HTTP until it is told to stop; requests that run are finished first.",
    "mcp": "Serve a model's tools on standard input and output (Model Context Protocol).",
    "view": "Open the browser at a stored plan, and print the address.",
    "plans": "List the plans of a scope, newest first, a page at a time.",
    "scope": "List scopes, build a scope's indexes, or delete a scope.",
    "reembed": "Move a scope to another embedding model.",
    "source": "List the sources of a scope, show one, prune its old versions, or erase it.",
    "token": "Make, list and revoke the access tokens of a scope.",
    "pack": "Select from candidates of your own what fits a budget of tokens.",
    "config": "Print every setting, its value, and where the value came from.",
    "db": "Start, stop and reach the embedded server.",
    "migrate": "Bring a database to this version's schema.",
    "doctor": "Examine the database, the embedder and the counters, and say what to do.",
}
"""Every command and its line in the help, which is how its own help begins."""

SETTINGS: Mapping[str, Any] = {
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class Commands(TyperGroup):
    """A group that imports a command's module when it is asked for, so that none pays for another's imports.

    A module has an `app`, or one function of its own name.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"planner.surfaces.cli.{cmd_name}")
        app = getattr(module, "app", None)
        if app is None:
            app = typer.Typer(**SETTINGS)
            app.command(cmd_name)(getattr(module, cmd_name))
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(name="planner", help=EXAMPLES, cls=Commands, **SETTINGS)


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
