"""`planner eval fit`: the weights of score_model v2 from labelled corpora, and what they got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from planner.evaluation.corpora import Corpus, read_corpus
from planner.evaluation.fit.program import VERSION
from planner.evaluation.fit.program import fit as fitted_to
from planner.evaluation.fit.rankings import OWN
from planner.evaluation.loading import Progress
from planner.evaluation.report import Report
from planner.settings import check_values
from planner.surfaces.cli.eval_options import (
    DEFAULT_BUDGETS,
    Budgets,
    Corpora,
    JsonFile,
    Limit,
    budgets_of,
    refuse_unwritable,
    report_each,
)
from planner.surfaces.cli.options import ConfigFile, DatabaseUrl, DataDir, Overrides, load_settings
from planner.surfaces.cli.output import console, emit_table, visible
from planner.surfaces.cli.server import reached


def fit(
    corpora: Corpora,
    *,
    embedder: Annotated[
        list[str] | None, typer.Option(help="The embedder; repeatable: weights for all of them.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The file of weights to write.", dir_okay=False)
    ] = Path("score-weights.json"),
    version: Annotated[str, typer.Option(help="What the file calls itself; plans record it.")] = VERSION,
    rounds: Annotated[int, typer.Option(min=1, max=10, help="How often pools are recalled and fitted.")] = 2,
    budgets: Budgets = DEFAULT_BUDGETS,
    json_file: JsonFile = None,
    limit: Limit = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Fit the weights of score_model v2 to corpora whose evidence is labelled, and write them to a file.

    Each corpus is ingested into a scratch database, and every question's pool is recalled: in the first round
    by the weights in force, then by those of the round before. What each corpus gets is printed beside what
    cosine, BM25 and their fusions get, and what it gets by weights that were fitted without it, which says
    what to expect elsewhere. The setting score_weights puts the file into use.

    Example: planner eval fit corpora/mine corpora/other --out weights.json
    """
    base = load_settings(config, overrides, database_url=database_url, data_dir=data_dir).settings
    settings = [
        base.model_copy(update={"embedder": check_values({"embedder": one}, "argument").embedder})
        for one in dict.fromkeys(embedder or [base.embedder])
    ]
    how: dict[str, Any] = {"budgets": budgets_of(budgets), "rounds": rounds, "version": version}
    read = [read_corpus(folder) for folder in corpora]
    refuse_unwritable(str(out), "--out")
    refuse_unwritable(json_file)
    with reached(base) as url:

        def written(read: Sequence[Corpus], progress: Progress) -> list[Report]:
            fitted = fitted_to(read, url, settings, limit=limit, progress=progress, **how)
            out.write_text(fitted.file(), encoding="utf-8")
            return [fitted.to_dict()]

        report_each([read], written, _show, json_file)


def _show(report: Report) -> None:
    """Print what each corpus gets, and the weights."""
    for one in report["corpora"]:
        about = f"{visible(one['corpus'])}, {visible(one['embedder'])}: {one['questions']} questions"
        console.print(f"{about}; evidence/all of it, in percent", soft_wrap=True)
        emit_table(_figures(one))
    if all(one["left_out"] is None for one in report["corpora"]):
        console.print("One corpus alone: nothing here says what to expect elsewhere.", soft_wrap=True)
    weights = ", ".join(f"{term} {weight}" for term, weight in report["weights"].items())
    console.print(f"weights in sixteenths: {weights}", soft_wrap=True)


def _figures(one: Mapping[str, Any]) -> Table:
    table = Table(box=None)
    table.add_column("", no_wrap=True)
    for budget in one["figures"][OWN]:
        table.add_column(budget, justify="right", no_wrap=True)
    for name, cells in sorted(one["figures"].items(), key=lambda item: item[0] == OWN):
        table.add_row(name, *_percent(cells))
    if one["left_out"] is not None:
        table.add_row(f"{OWN}, fitted without it", *_percent(one["left_out"]["figures"]))
    return table


def _percent(cells: Mapping[str, Mapping[str, float]]) -> list[str]:
    shares = ((cell["evidence_recall"], cell["all_evidence"]) for cell in cells.values())
    return [f"{100 * evidence:.1f}/{100 * everything:.1f}" for evidence, everything in shares]
