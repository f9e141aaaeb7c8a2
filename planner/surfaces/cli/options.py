"""The options that commands share, and the settings that they make."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from planner.settings import Loaded, load, parsed


def plain(value: str | None) -> str | None:
    """Return an option's text. Raises BadParameter for what no database and no output can hold."""
    if value is not None:
        if "\0" in value:
            raise typer.BadParameter("NUL characters are not allowed")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise typer.BadParameter("it is not valid UTF-8") from None
    return value


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Split `key=value` texts at the first `=`. Raises BadParameter; a repeated key is refused."""
    found: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = str(plain(text)).partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{text!r} is not key=value", param_hint=option)
        if key in found:
            raise typer.BadParameter(f"{key!r} is given twice", param_hint=option)
        found[key] = value
    return found


DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="PostgreSQL; else PLANNER_DATABASE_URL, else the embedded server.",
    ),
]
DataDir = Annotated[
    str | None, typer.Option("--data-dir", metavar="FOLDER", help="Use the embedded server of this folder.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Configuration file instead of planner.toml.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a setting; repeatable. `planner config` lists them."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Scope = Annotated[str, typer.Argument(metavar="SCOPE", help="The scope's name.", show_default=False)]
PlanArgument = Annotated[
    str, typer.Argument(metavar="PLAN", help="A plan, as <scope>:<plan_id>.", show_default=False)
]
What = Annotated[
    str,
    typer.Argument(
        metavar="WHAT", help="A span source@tx:start-end, a node, a source, or a phrase.", show_default=False
    ),
]


def load_settings(
    config: Path | None,
    overrides: Sequence[str] | None = None,
    *,
    database_url: str | None = None,
    data_dir: str | None = None,
) -> Loaded:
    """Load the settings; arguments win. Raises SettingsError, BadParameter.

    A data folder that is given as an argument means its embedded server, whatever database the file or the
    environment names.
    """
    arguments: dict[str, object] = {key: parsed(key, text) for key, text in pairs(overrides, "--set").items()}
    places = {"database_url": database_url, "data_dir": data_dir}
    arguments |= {key: value for key, value in places.items() if value is not None}
    loaded = load(arguments, file=config)
    if "data_dir" not in arguments or "database_url" in arguments:
        return loaded
    embedded = loaded.settings.model_copy(update={"database_url": None})
    return Loaded(embedded, {**loaded.origins, "database_url": "argument"})
