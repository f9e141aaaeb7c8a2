"""`planner db`: the life of the embedded server, and ways to the database in force."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Annotated

import typer
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from planner.embedded import EmbeddedServer
from planner.errors import SettingsError
from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, load_settings
from planner.surfaces.cli.output import console, emit_json, emit_text, visible
from planner.surfaces.cli.server import embedded, reached

app = typer.Typer(
    help="""
    Start, stop and reach the embedded server.

    It starts by itself when a command needs it, and ends a minute after the last one, unless it was
    started by `planner db start`. Its files are in PLANNER_DATA_DIR, else in the platform's folder for
    user data; `planner db status` names it.

    Examples:

        planner db status

        planner db psql -- -c 'select * from planner.plan_overview'
    """,
    **SETTINGS,
)


@app.command()
def start(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Start the embedded server; it stays until `planner db stop`."""
    server = embedded(load_settings(config, data_dir=data_dir).settings)
    server.start()
    _print_status(server, as_json)


@app.command()
def stop(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Stop the embedded server, whoever uses it."""
    server = embedded(load_settings(config, data_dir=data_dir).settings)
    server.stop()
    _print_status(server, as_json)


@app.command()
def status(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Say whether the embedded server runs, and where its files are."""
    _print_status(embedded(load_settings(config, data_dir=data_dir).settings), as_json)


@app.command()
def url(
    config: ConfigFile = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print the URL of the database in force, with its password; an embedded server is started.

    Example: pg_dump "$(planner db url)"
    """
    settings = load_settings(config, database_url=database_url, data_dir=data_dir).settings
    with reached(settings) as found:
        if as_json:
            emit_json({"url": found, "embedded": settings.database_url is None})
        else:
            emit_text(found)


@app.command()
def psql(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of psql, after --.", show_default=False)
    ] = None,
    config: ConfigFile = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print problems as JSON.")] = False,
) -> int:
    """Open the bundled psql on the database in force, and return its exit code.

    Example: planner db psql -- -c 'select plan, question from planner.plan_overview'
    """
    settings = load_settings(config, database_url=database_url, data_dir=data_dir).settings
    program = embedded(settings).psql_path
    with reached(settings) as found:
        target, environment = _without_password(found)
        command = [str(program), "--dbname", target, *(arguments or ())]
        child = subprocess.Popen(command, env=environment)  # noqa: S603 - the bundled program, no shell
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is psql's, which cancels a query
        try:
            return child.wait()
        finally:
            signal.signal(signal.SIGINT, before)


def _without_password(url: str) -> tuple[str, dict[str, str]]:
    """Move the password from the command line, which every user here can read, to the environment."""
    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError as error:
        said = str(error).strip()
        raise SettingsError(f"database_url cannot be read: {said}", key="database_url") from None
    password = parts.pop("password", None)
    environment = os.environ | ({"PGPASSWORD": str(password)} if password else {})
    return make_conninfo("", **parts), environment


def _print_status(server: EmbeddedServer, as_json: bool) -> None:
    found = server.status()
    if as_json:
        emit_json({**found.to_dict(), "url": server.url})
        return
    stays = "until it is stopped" if found.pinned else "for as long as it is needed"
    running = f"runs {stays}: PostgreSQL {found.version}, pid {found.pid}"
    console.print(running if found.running else "does not run", soft_wrap=True)
    console.print(f"data  {visible(str(found.data_dir))}", soft_wrap=True)
    console.print(f"url   {visible(server.url)}", soft_wrap=True)
