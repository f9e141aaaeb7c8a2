"""`planner config`: every setting, its value and where it came from."""

from __future__ import annotations

import json

from rich.table import Table

from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, load_settings
from planner.surfaces.cli.output import emit_json, emit_table, visible


def config(
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print every setting, its value, and where the value came from.

    A setting comes from [planner] in planner.toml, then from PLANNER_<KEY> in the environment, then from
    arguments; the later wins. What is unknown or out of range is refused, never clamped.

    For example:

        planner config

        planner config --config production.toml --set max_budget=8000 --json
    """
    loaded = load_settings(config, overrides, database_url=database_url, data_dir=data_dir)
    values = loaded.settings.to_dict()
    if as_json:
        emit_json({key: {"value": value, "origin": loaded.origins[key]} for key, value in values.items()})
        return
    table = Table(box=None)
    for heading in ("key", "value", "origin"):
        table.add_column(heading, overflow="fold")
    for key, value in values.items():
        lines = (
            [f"{k} = {_written(v)}" for k, v in value.items()]
            if isinstance(value, dict)
            else [_written(value)]
        )
        table.add_row(key, visible("\n".join(lines), keep="\n"), visible(loaded.origins[key]))
    emit_table(table)


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
