"""`planner eval`: labelled corpora, measured through the real path; reports compared and checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from planner.evaluation.comparison import check as checked
from planner.evaluation.comparison import compare as compared
from planner.evaluation.corpora import read_corpus
from planner.evaluation.loading import Progress
from planner.evaluation.measure import measure
from planner.evaluation.report import RANKING, encoded
from planner.evaluation.stored import METRICS, read_reports
from planner.settings import Settings, check_values, parsed
from planner.surfaces.cli import DONE, FAILED
from planner.surfaces.cli.app import SETTINGS
from planner.surfaces.cli.eval_tables import show_check, show_differences, show_report
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides, load_settings
from planner.surfaces.cli.output import emit_json, emit_text, messages, visible
from planner.surfaces.cli.server import reached
from planner.types import Unit

TOLERANCE = 0.01
STDOUT = "-"
UNITS: tuple[Unit, ...] = get_args(Unit)

app = typer.Typer(
    help="""
    Measure how good the evidence is, on corpora whose evidence is labelled.

    Examples:

        planner eval run corpora/mine --json before.json

        planner eval compare before.json after.json

        planner eval check after.json --baseline before.json --tolerance 0.01
    """,
    **SETTINGS,
)

Corpora = Annotated[
    list[Path],
    typer.Argument(
        metavar="CORPUS_DIR…", help="Folders with sources.jsonl and questions.jsonl.", show_default=False
    ),
]
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
    budgets: Annotated[str, typer.Option(help="What plans and bundles may hold, in tokens.")] = (
        "512,1024,2048,4096,6000"
    ),
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the report to a file; - is stdout.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first N questions.")] = None,
    skip_specified: Annotated[
        bool, typer.Option("--skip-specified", help="Measure the variants alone.")
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

    Example: planner eval run corpora/mine --score-model v1 --max-frac 0.4,1 --unit all --json report.json
    """
    base = load_settings(config, overrides, database_url=database_url, data_dir=data_dir).settings
    base = base if embedder is None else _changed(base, {"embedder": embedder})
    listed = {"score_model": score_model, "plan_model": plan_model, "max_frac_per_source": max_frac}
    variants = _variants(base, listed)
    tokens, units = _budgets(budgets), _units(unit or base.unit)
    read = [read_corpus(folder) for folder in corpora]
    _refuse_unwritable(json_file)
    how: dict[str, Any] = {"budgets": tokens, "units": units, "limit": limit, "specified": not skip_specified}
    reports = []
    with reached(base) as url:
        for corpus in read:
            with _progress() as progress:
                measured = measure(corpus, url, variants, progress=progress, **how)
            reports += measured
            if json_file == STDOUT:
                continue
            for one in measured:
                show_report(one)
            if json_file is not None:
                Path(json_file).write_text(encoded(reports) + "\n", encoding="utf-8")
    if json_file == STDOUT:
        emit_text(encoded(reports))


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


def _budgets(text: str) -> tuple[int, ...]:
    try:
        tokens = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no list of tokens", param_hint="--budgets") from None
    if min(tokens) < 1 or len(set(tokens)) < len(tokens):
        raise typer.BadParameter(f"{text!r}: different budgets of 1 token or more", param_hint="--budgets")
    return tokens


def _units(text: str) -> tuple[Unit, ...]:
    """Return the units to deliver by."""
    if text == "none":
        return ()
    names = UNITS if text == "all" else tuple(part.strip() for part in text.split(","))
    for name in names:
        if name not in UNITS:
            known = ", ".join((*UNITS, "all", "none"))
            raise typer.BadParameter(f"{name!r} is not one of {known}", param_hint="--unit")
    return tuple(unit for unit in UNITS if unit in names)


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


def _refuse_unwritable(file: str | None) -> None:
    """Refuse before the work what could not be written after it."""
    if file in (None, STDOUT):
        return
    try:
        with Path(str(file)).open("ab"):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise typer.BadParameter(f"{file!r} cannot be written: {reason}", param_hint="--json") from None


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show what is being done, on a terminal only."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Bar(
        *columns, TimeElapsedColumn(), console=messages, transient=True, disable=not messages.is_terminal
    ) as shown:
        task = shown.add_task("", total=None)

        def done(stage: str, at: int, total: int) -> None:
            shown.update(task, description=visible(stage), completed=at, total=total)

        yield done
