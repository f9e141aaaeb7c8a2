"""The database that a command works on: the one that is named, else the embedded server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from planner.client import Planner
from planner.surfaces.cli.options import load_settings

ACTOR = "cli"


@contextmanager
def opened(
    config: Path | None,
    overrides: Sequence[str] | None,
    database_url: str | None,
    data_dir: str | None,
    *,
    actor: str = ACTOR,
) -> Iterator[Planner]:
    """Give a planner on the database that options, environment and file name. Raises as `Planner.connect`."""
    settings = load_settings(config, overrides, database_url=database_url, data_dir=data_dir).settings
    with Planner.connect(settings=settings, actor=actor) as planner:
        yield planner
