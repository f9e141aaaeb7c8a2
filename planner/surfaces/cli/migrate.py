"""`planner migrate`: the schema of this version, made, checked or printed."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.store import upgrade
from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, load_settings
from planner.surfaces.cli.output import console, emit_json, emit_text
from planner.surfaces.cli.server import reached


def migrate(
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the script for an empty database instead; touch nothing.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Say how far the database is; exit 1 where it is behind.")
    ] = False,
    no_roles: Annotated[
        bool, typer.Option("--no-roles", help="Create and grant no role: an administrator has done so.")
    ] = False,
    config: ConfigFile = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Bring a database to this version's schema.

    A second run changes nothing. Without a URL it is the embedded server's database, which would be migrated
    by itself where it is empty.

    For example:

        planner migrate --database-url postgresql://admin@db.example/evidence

        planner migrate --check

        planner migrate --sql --no-roles > schema.sql
    """
    if sql and check:
        raise typer.BadParameter("give --sql or --check, not both")
    settings = load_settings(config, database_url=database_url, data_dir=data_dir).settings
    if sql:
        script = upgrade.script(roles=not no_roles)
        emit_json({"sql": script}) if as_json else emit_text(script)
        return DONE
    with reached(settings) as url:
        if check:
            return _checked(url, as_json)
        report = upgrade.migrate(url, roles=not no_roles)
    applied = ", ".join(report.applied) or "nothing to apply"
    if as_json:
        emit_json(report.to_dict())
    else:
        console.print(f"{applied}; the schema is at {report.after}, its objects are rebuilt", soft_wrap=True)
    return DONE


def _checked(url: str, as_json: bool) -> int:
    status = upgrade.check(url)
    if as_json:
        emit_json(status.to_dict())
    elif status.up_to_date:
        console.print(f"the schema is at {status.head}, as this version needs it", soft_wrap=True)
    else:
        lacking = ", ".join(status.pending) or "its views, functions, policies and grants"
        console.print(
            f"the schema is at {status.current or 'no revision'} and lacks {lacking}; run `planner migrate`",
            soft_wrap=True,
        )
    return DONE if status.up_to_date else FAILED
