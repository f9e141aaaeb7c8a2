"""`planner serve`: the library over HTTP."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from planner.errors import SettingsError
from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import ConfigFile, DatabaseUrl, DataDir, Overrides, plain

ACTOR = "http"


def serve(
    host: Annotated[
        str,
        typer.Option(callback=plain, help="The address to listen on; other than loopback asks for tokens."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8000,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Ask for tokens on the loopback interface too.")
    ] = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Log JSON, an object a line.")] = False,
) -> int:
    """Serve the library over HTTP until it is told to stop; requests that run are finished first.

    Without --tokens it listens on the loopback interface alone, and whoever is on this machine may do
    everything. On any other address every request needs a token (`planner token create`). docs/http.md has
    the routes; /openapi.json describes them.

    For example:

        planner serve

        planner serve --host 0.0.0.0 --port 8443 --json --database-url postgresql://app@db.example/evidence
    """
    try:
        from planner.surfaces.http import server  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"the service needs {error.name}: pip install 'evidence-planner[server]'", origin="argument"
        ) from None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(DONE))
    with opened(config, overrides, database_url, data_dir, actor=ACTOR) as planner:
        return DONE if server.run(planner, host, port, tokens=tokens, as_json=as_json) else FAILED
