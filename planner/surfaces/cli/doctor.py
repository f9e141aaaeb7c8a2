"""`planner doctor`: whether everything that plans depend on is in order, and what to do where it is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.text import Text

from planner.client import Planner
from planner.errors import EmbeddedServerError, EmbeddedUnavailable, PlannerError
from planner.pipeline.browse import Scope
from planner.pipeline.diagnose import examine_parts
from planner.settings import Settings
from planner.store.doctor import Check, examine
from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, load_settings
from planner.surfaces.cli.output import console, emit_json, visible
from planner.surfaces.cli.server import embedded

SIGNS = {True: "ok  ", False: "FAIL", None: "info"}


def doctor(
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Examine the database, the embedder and the counters, and say what to do.

    It changes nothing; row security is tried, not only looked up. Exit code 1 where something fails.

    Example: planner doctor --database-url postgresql://app@db.example/evidence
    """
    settings = load_settings(config, overrides, database_url=database_url, data_dir=data_dir).settings
    checks = list(_findings(settings))
    failed = any(check.ok is False for check in checks)
    if as_json:
        emit_json({"ok": not failed, "checks": [check.to_dict() for check in checks]})
    else:
        for check in checks:
            _show(check)
    return FAILED if failed else DONE


def _findings(settings: Settings) -> Iterator[Check]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Check("python", True, version)
    scopes: tuple[Scope, ...] = ()
    try:
        if settings.database_url is not None:
            yield from examine(settings.database_url)
            scopes = _scopes(settings.database_url, settings)
        else:
            with embedded(settings) as server:
                yield Check("embedded server", True, f"files in {server.status().data_dir}")
                yield from examine(server.url)
                scopes = _scopes(server.url, settings)
    except EmbeddedServerError as error:
        unavailable = isinstance(error, EmbeddedUnavailable)
        remedy = "pip install 'evidence-planner[embedded]'" if unavailable else "see its log"
        yield Check("embedded server", False, str(error), remedy)
    yield from examine_parts(settings, scopes)


def _scopes(url: str, settings: Settings) -> tuple[Scope, ...]:
    """Return the scopes, none where the database is in a state that has been reported already."""
    try:
        with Planner.connect(url, settings=settings) as planner:
            return planner.scopes()
    except PlannerError:
        return ()


def _show(check: Check) -> None:
    line = Text.assemble((SIGNS[check.ok], "bold red" if check.ok is False else ""), f"  {check.name}: ")
    console.print(line.append(visible(check.detail)), soft_wrap=True)
    if check.remedy is not None and check.ok is not True:
        console.print(f"      {visible(check.remedy)}", soft_wrap=True)
