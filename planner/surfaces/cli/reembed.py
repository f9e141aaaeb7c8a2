"""`planner reembed`: a scope moves to another embedding model."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.pipeline.reembed import DEFAULT_BATCH, MAX_BATCH, Reembedded
from planner.surfaces.cli.database import ACTOR, opened
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, Scope, plain
from planner.surfaces.cli.output import console, emit_json, visible
from planner.surfaces.cli.progress import progress


def reembed(
    scope: Scope,
    embedder: Annotated[
        str | None,
        typer.Option(callback=plain, metavar="NAME", help="wordllama or http; else the configured embedder."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=MAX_BATCH, help="Nodes a transaction.")] = DEFAULT_BATCH,
    actor: Annotated[str, typer.Option(callback=plain, help="Who does it, for the ledger.")] = ACTOR,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Move a scope to another embedding model.

    All current nodes are embedded by the new model, a batch a transaction, while plans and ingest go on with
    the old one; then one transaction switches. A run that was interrupted goes on where it stopped. Plans as
    of before the switch still use the old model.

    For example:

        planner reembed notes --embedder http --config planner.toml

        planner reembed notes --embedder wordllama --batch 1000
    """
    if not actor:
        raise typer.BadParameter("it is empty", param_hint="--actor")
    with (
        opened(config, overrides, database_url, data_dir, actor=actor) as planner,
        progress("nodes") as shown,
    ):
        done = planner.reembed(scope, embedder, batch=batch, progress=shown)
    if as_json:
        emit_json(done.to_dict())
    else:
        show(done)


def show(done: Reembedded) -> None:
    """Print what became of the scope, and what is left to do."""
    model = visible(f"{done.model} {done.revision}".strip())
    if done.tx is None:
        console.print(f"{done.scope} uses {model} already; nothing to do", soft_wrap=True)
        return
    before = f" instead of {visible(done.previous)}" if done.previous else ""
    console.print(
        f"{done.scope} uses {model}{before} from transaction {done.tx} on; wrote {done.vectors} vectors of "
        f"{done.dimensions} dimensions",
        soft_wrap=True,
    )
    if done.without:
        console.print(f"{done.without} nodes have no vector: their texts have no direction", soft_wrap=True)
    if done.index_left:
        console.print(
            f"its vector index serves the old vectors only: run `planner scope index {done.scope}`, and "
            "`planner doctor` names the one to drop",
            soft_wrap=True,
        )
