"""`planner mcp`: the tools of a language model, on standard input and output."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from planner.errors import RequestError, SettingsError
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import ConfigFile, DatabaseUrl, DataDir, Overrides, plain
from planner.tracing import check_scope

ACTOR = "mcp"

TOKEN = "PLANNER_TOKEN"  # noqa: S105  # the name of the variable
"""The environment variable of the token; an argument would be seen by whoever lists processes."""


def mcp(
    scope: Annotated[
        str | None,
        typer.Option(callback=plain, help="Serve this scope alone; else each call names one."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Leave out what writes.")] = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what keeps it from starting as JSON, on standard error.")
    ] = False,
) -> None:
    """Serve a model's tools on standard input and output (Model Context Protocol), until the input ends.

    With PLANNER_TOKEN in the environment the server is its holder's: its scope, its permissions. Without, it
    is the operator's, like every other command. docs/mcp.md has the tools, and `planner serve` the same at
    /mcp.

    For example:

        planner mcp --scope notes --read-only
    """
    try:
        from planner.surfaces.mcp import stdio  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"this needs {error.name}: pip install 'evidence-planner[mcp]'", origin="argument"
        ) from None
    token = os.environ.pop(TOKEN, None)  # no child process needs it
    if scope is not None:
        check_scope(scope)
        if token is not None:
            raise RequestError(f"{TOKEN} has a scope of its own; leave out --scope", field="scope")
    with opened(config, overrides, database_url, data_dir, actor=ACTOR) as planner:
        stdio.run(planner, token=token, scope=scope, read_only=read_only)
