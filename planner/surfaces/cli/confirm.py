"""Asking before something is destroyed: on a terminal the person, elsewhere only `--yes` will do."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from planner.surfaces.cli.output import visible

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; needed where there is no terminal.")]


def confirm(consequence: str, *, yes: bool, name: str | None = None) -> None:
    """Go on only where a person agrees, or with `yes`; where `name` is given, it is to be typed.

    Raises BadParameter where there is no terminal to ask on or another name is typed, and Abort for a no.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise typer.BadParameter(f"{visible(consequence)}, and there is no terminal to ask on: give --yes")
    if name is None:
        typer.confirm(f"{visible(consequence)}. Go on?", abort=True, err=True)
        return
    typed = typer.prompt(f"{visible(consequence)}. Type its name to go on", err=True)
    if typed != name:
        raise typer.BadParameter(f"{typed!r} is not {name!r}; nothing was deleted")
