"""`planner derive`: a text that was made from spans becomes a cache."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.ingest.canonical import canonical_text
from planner.reading import STDIN, STDIN_ID, InputFile, read
from planner.surfaces.cli.database import ACTOR, opened
from planner.surfaces.cli.ingest import Actor, Attributes, Title, show
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    Scope,
    pairs,
    plain,
)
from planner.surfaces.cli.output import emit_json


def derive(
    scope: Scope,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - is standard input.")] = STDIN,
    *,
    made_from: Annotated[
        list[str],
        typer.Option(
            "--from",
            metavar="REF",
            help="A span that it was made from, source@tx:start-end; repeatable.",
            show_default=False,
        ),
    ],
    kind: Annotated[str, typer.Option(callback=plain, help="What it is, as a word.")] = "summary",
    source_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", callback=plain, help="Its source id, else one of kind and spans."),
    ] = None,
    title: Title = None,
    attr: Attributes = None,
    actor: Actor = ACTOR,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Store a text that was made from spans, such as a summary.

    It becomes a source of class `cache`: plans find it at a discount, it is trusted at most as the least
    trusted of what it was made from, goes stale with it, is erased with it, and is never evidence that a
    citation is verified against. A new text of the same spans, or of the same --id, is a new version.

    Example: planner derive notes "The gate closes at 2.9 m." --from storm-gate.md@14:210-388
    """
    attributes = pairs(attr, "--attr")
    with opened(config, overrides, database_url, data_dir, actor=actor) as planner:
        if text == STDIN:
            raw = read(InputFile(STDIN_ID, None), planner.engine.settings.max_file_bytes)
            text = canonical_text(raw).decode()
        refs = [str(plain(ref)) for ref in made_from]
        report = planner.derive(
            scope, text, refs, kind=kind, source_id=source_id, title=title, attributes=attributes
        )
    if as_json:
        emit_json(report.to_dict())
    else:
        show(report)
