"""`planner token`: who may use a scope over the network, and for what."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from planner.granting import PERMISSIONS
from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.confirm import Yes, confirm
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.durations import duration
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, Scope, plain
from planner.surfaces.cli.output import console, emit_json, emit_table, emit_text, messages, visible

app = typer.Typer(
    help="""
    Make, list and revoke the access tokens of a scope.

    Examples:

        planner token create notes --label "the assistant" --permission read --expires 30d

        planner token list notes

        planner token revoke notes 0123456789abcdef
    """,
    **SETTINGS,
)


@app.command()
def create(
    scope: Scope,
    label: Annotated[
        str, typer.Option(callback=plain, help="Who holds it, in your words.", show_default=False)
    ],
    permission: Annotated[
        list[str],
        typer.Option(metavar="|".join(PERMISSIONS), help="What it permits; repeatable.", show_default=False),
    ],
    expires: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="For how long, as 30d or 12h; default: until it is revoked."),
    ] = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, this once: only its hash is kept.

    It permits to `read` (plan, deliver, read sources), to `write` (ingest, append), to `erase`, and to
    `inspect` (see plans and why they came out so), in this scope alone.

    Example: planner token create notes --label "the assistant" --permission read --expires 30d
    """
    lifetime = duration(expires) if expires is not None else None
    with opened(config, overrides, database_url, data_dir) as planner:
        made = planner.create_token(scope, label=label, permissions=permission, expires_in=lifetime)
    if as_json:
        emit_json(made.to_dict())
        return
    emit_text(made.text)
    until = f", until {made.token.expires_at:%Y-%m-%d %H:%M %Z}" if made.token.expires_at else ""
    messages.print(
        f"{made.token.token_id} may {', '.join(made.token.permissions)} in {scope}{until}; "
        "the token is shown this once, so keep it now",
        soft_wrap=True,
    )


@app.command("list")
def list_tokens(
    scope: Scope,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the tokens of a scope, oldest first, those that expired or were revoked too.

    Example: planner token list notes
    """
    with opened(config, overrides, database_url, data_dir) as planner:
        found = planner.tokens(scope)
    if as_json:
        emit_json({"scope": scope, "tokens": [token.to_dict() for token in found]})
        return
    table = Table(box=None)
    for name in ("token", "label", "permissions", "created", "expires", "revoked"):
        table.add_column(name, overflow="fold")
    for token in found:
        times = (token.created_at, token.expires_at, token.revoked_at)
        shown = (time.isoformat(timespec="seconds") if time else "" for time in times)
        table.add_row(token.token_id, visible(token.label), ", ".join(token.permissions), *shown)
    if found:
        emit_table(table)
    else:
        console.print("no token yet; `planner token create SCOPE` makes one", soft_wrap=True)


@app.command()
def revoke(
    scope: Scope,
    token: Annotated[
        str, typer.Argument(metavar="TOKEN_ID", help="As listed.", callback=plain, show_default=False)
    ],
    yes: Yes = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token, at once and for good.

    Example: planner token revoke notes 0123456789abcdef --yes
    """
    confirm(f"the token {token} of {scope} stops working, for good", yes=yes)
    with opened(config, overrides, database_url, data_dir) as planner:
        revoked = planner.revoke_token(scope, token)
    if as_json:
        emit_json(revoked.to_dict())
    else:
        console.print(f"revoked {revoked.token_id} ({visible(revoked.label)})", soft_wrap=True)
