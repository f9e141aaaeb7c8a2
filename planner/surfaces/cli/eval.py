"""`planner eval`: labelled corpora, measured through the real path; reports compared and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from planner.evaluation.ablation import has_parts
from planner.evaluation.comparison import check as checked
from planner.evaluation.comparison import compare as compared
from planner.evaluation.corpora import read_corpus
from planner.evaluation.measure import measure_together
from planner.evaluation.report import RANKING
from planner.evaluation.stored import METRICS, read_reports
from planner.evaluation.together import together as pooled
from planner.settings import Settings, check_values, parsed
from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.eval_fit import fit
from planner.surfaces.cli.eval_options import (
    DEFAULT_BUDGETS,
    Budgets,
    Corpora,
    JsonFile,
    Limit,
    budgets_of,
    refuse_unwritable,
    report_each,
    units_of,
)
from planner.surfaces.cli.eval_sweep import sweep
from planner.surfaces.cli.eval_tables import show_check, show_differences, show_report
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, load_settings
from planner.surfaces.cli.output import emit_json
from planner.surfaces.cli.server import reached

TOLERANCE = 0.01

app = typer.Typer(
    help="""
    Measure how good the evidence is, on corpora whose evidence is labelled.

    Examples:

        planner eval run corpora/mine --json before.json

        planner eval compare before.json after.json

        planner eval check after.json --baseline before.json --tolerance 0.01

        planner eval sweep corpora/mine --max-fracs 0.4,1 --units chunk,auto

        planner eval fit corpora/mine corpora/other --out weights.json
    """,
    **SETTINGS,
)

LISTED = "several, separated by commas, are variants"


@app.command()
def run(
    corpora: Corpora,
    *,
    embedder: Annotated[str | None, typer.Option(help="The embedder; default: the configured one.")] = None,
    score_model: Annotated[str | None, typer.Option(help=f"v1, …; {LISTED}.")] = None,
    plan_model: Annotated[str | None, typer.Option(help=f"v1 or v2; {LISTED}.")] = None,
    max_frac: Annotated[
        str | None, typer.Option(help=f"Share of a plan that one source may take; {LISTED}.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Deliver by chunk, window, record, auto, several, all, or none.")
    ] = None,
    budgets: Budgets = DEFAULT_BUDGETS,
    json_file: JsonFile = None,
    limit: Limit = None,
    skip_specified: Annotated[
        bool, typer.Option("--skip-specified", help="Measure the variants alone.")
    ] = False,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Measure score_model v2 without each of its parts too.")
    ] = False,
    together: Annotated[
        bool, typer.Option("--together", help="Put all corpora into one scope, and ask each there.")
    ] = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Ingest each corpus into a scratch database, plan and deliver every question, and measure it.

    The database is made on the server of --database-url, else on the embedded one, and dropped at the end.
    The rule as it is specified comes first (score_model v1, plan_model v1, 0.4 of a plan from one source),
    then the settings in force with what the options change. Budgets bind as they are, without a reserve.
    --together makes one scope of all corpora, and reports each; --ablate leaves out, in turn, each leg of
    recall and each group of terms.

    Example: planner eval run corpora/mine --score-model v1 --max-frac 0.4,1 --unit all --json report.json
    """
    base = load_settings(config, overrides, database_url=database_url, data_dir=data_dir).settings
    base = base if embedder is None else _changed(base, {"embedder": embedder})
    listed = {"score_model": score_model, "plan_model": plan_model, "max_frac_per_source": max_frac}
    variants = _variants(base, listed)
    if ablate and not all(map(has_parts, variants)):
        raise typer.BadParameter("needs score_model v2, which is made of parts", param_hint="--ablate")
    how: dict[str, Any] = {"budgets": budgets_of(budgets), "units": units_of(unit or base.unit, "--unit")}
    how |= {"limit": limit, "specified": not skip_specified, "ablate": ablate}
    read = [read_corpus(folder) for folder in corpora]
    stores = [pooled(read)] if together else [(corpus,) for corpus in read]
    refuse_unwritable(json_file)
    with reached(base) as url:
        report_each(
            stores,
            lambda store, progress: measure_together(store, url, variants, progress=progress, **how),
            show_report,
            json_file,
        )


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A report.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another of the same corpora.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Say by how much two reports differ in each figure, and whether that may be chance.

    Question by question: how many got more and how many less, and the exact sign test on them.

    Example: planner eval compare before.json after.json
    """
    differences = compared(read_reports(a), read_reports(b))
    if as_json:
        emit_json({"differences": [one.to_dict() for one in differences]})
    else:
        show_differences(differences)


app.command()(sweep)
app.command()(fit)


@app.command()
def check(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="A report.", show_default=False)],
    baseline: Annotated[
        Path, typer.Option(metavar="FILE", help="The report that it must not fall below.", show_default=False)
    ],
    tolerance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[METRIC=]SHARE", help="How much a figure may fall, 0.01 by default; repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Fail where a figure fell below a baseline by more than its tolerance; name what got worse.

    The figures are evidence recall, all-evidence and answer-in-context at each budget, of what was selected
    and of what was delivered, and those of the ranking. Exit code 1 where one fell.

    Example: planner eval check report.json --baseline baseline.json --tolerance 0.01 --tolerance mrr=0.02
    """
    for_all, by_metric = _tolerances(tolerance or ())
    found = checked(read_reports(report), read_reports(baseline), for_all, by_metric)
    if as_json:
        emit_json(found.to_dict())
    else:
        show_check(found)
    return FAILED if found.falls else DONE


def _variants(base: Settings, listed: Mapping[str, str | None]) -> list[Settings]:
    """Return the settings under each combination of what the options list. Raises SettingsError."""
    given = {
        key: [parsed(key, text.strip()) for text in texts.split(",")]
        for key, texts in listed.items()
        if texts is not None
    }
    return [_changed(base, dict(zip(given, values, strict=True))) for values in product(*given.values())]


def _changed(base: Settings, changes: Mapping[str, object]) -> Settings:
    valid = check_values(changes, "argument")
    return base.model_copy(update={key: getattr(valid, key) for key in changes})


def _tolerances(texts: Sequence[str]) -> tuple[float, dict[str, float]]:
    """Return the tolerance of all figures and those of single ones."""
    for_all, by_metric = TOLERANCE, {}
    for text in texts:
        metric, _, share = text.rpartition("=")
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1 or metric not in ("", *METRICS, *RANKING):
            known = ", ".join((*METRICS, *RANKING))
            raise typer.BadParameter(
                f"{text!r} is no share from 0 to 1, nor METRIC=SHARE; the metrics are {known}",
                param_hint="--tolerance",
            )
        if metric:
            by_metric[metric] = value
        else:
            for_all = value
    return for_all, by_metric
