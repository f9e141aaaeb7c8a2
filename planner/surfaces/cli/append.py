"""`planner append`: the next turns of a conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.ingest.canonical import canonical_text
from planner.ingest.conversation import messages_of
from planner.reading import STDIN, STDIN_ID, InputFile, read
from planner.surfaces.cli.database import ACTOR, opened
from planner.surfaces.cli.ingest import show
from planner.surfaces.cli.options import (
    AsJson,
    ConfigFile,
    DatabaseUrl,
    DataDir,
    Overrides,
    Scope,
    plain,
)
from planner.surfaces.cli.output import emit_json


def append(
    scope: Scope,
    conversation: Annotated[
        str,
        typer.Argument(
            metavar="CONVERSATION", help="The conversation's source id.", callback=plain, show_default=False
        ),
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The messages; - is standard input.")] = STDIN,
    actor: Annotated[str, typer.Option(callback=plain, help="Who appends, for the ledger.")] = ACTOR,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Append the next turns to a conversation, at the same cost however long it is.

    The messages are JSON as for `planner ingest`: an array, an object with `messages`, or one a line. A
    message whose `id` is there already is passed over. A conversation that is not there begins with them.

    Example: echo '{"speaker": "Ada", "content": "See you at 9."}' | planner append notes standup.json -
    """
    given = InputFile(STDIN_ID, None) if file == STDIN else InputFile(file, Path(file))
    with opened(config, overrides, database_url, data_dir, actor=actor) as planner:
        raw = read(given, planner.engine.settings.max_file_bytes)
        report = planner.append(scope, conversation, messages_of(canonical_text(raw).decode()))
    if as_json:
        emit_json(report.to_dict())
    else:
        show(report)
