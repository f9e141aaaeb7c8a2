"""`planner view`: a stored plan in the browser."""

from __future__ import annotations

import signal
import sys
import webbrowser
from typing import Annotated

import typer

from planner.errors import SettingsError
from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    PlanArgument,
    plain,
)
from planner.surfaces.cli.output import emit_json, emit_text, messages
from planner.tracing import plan_ref
from planner.types import PlanRef

HOST = "127.0.0.1"


def view(
    plan: PlanArgument,
    url: Annotated[
        str | None,
        typer.Option(
            callback=plain, metavar="URL", help="A service that runs (planner serve), as http://host:8000."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the browser, or only print the address.")
    ] = True,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Open the browser at a stored plan, and print the address.

    Without --url it serves on the loopback interface until it is told to stop, and whoever is on this
    machine may look. docs/viewer.md tells what there is to see.

    Example: planner view notes:0190f5a2-7c1e-7a53-8000-0123456789ab
    """
    ref = plan_ref(plan)
    try:
        from planner.surfaces.http import server  # noqa: PLC0415  # an extra
        from planner.surfaces.viewer.links import Links  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"the viewer needs {error.name}: pip install 'evidence-planner[server]'", origin="argument"
        ) from None

    def show(service: str, ref: PlanRef = ref) -> None:
        address = Links(f"{service.rstrip('/')}/ui").plan(ref)
        emit_json({"url": address}) if as_json else emit_text(address)
        sys.stdout.flush()
        if browser and not webbrowser.open(address):
            messages.print("no browser was found; open the address yourself", soft_wrap=True)

    if url is not None:
        show(url)
        return DONE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(DONE))
    with opened(config, overrides, database_url, data_dir, actor="viewer") as planner:
        planner.deliveries(ref)  # a plan that is not there is said here, not in a browser
        done = server.run(planner, HOST, port, tokens=False, as_json=as_json, ready=show)
    return DONE if done else FAILED
