"""What `planner eval` prints: a run's figures, differences, and what fell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from planner.evaluation.comparison import Checked, Difference
from planner.evaluation.report import RANKING, SPECIFIED, Report
from planner.surfaces.cli.output import bar, console, emit_table, visible

QUALITY = {"evidence": "evidence_recall", "all of it": "all_evidence", "answer": "answer_in_context"}
SHARES = {"filled": "utilisation", "stranded": "stranded_budget", "redundant": "redundant_bytes"}
LISTED = 40
BAR = 8
WORDS = ("of", "metric", "corpus", "question", "category", "ms", "without", "")


def show_report(report: Report) -> None:
    """Print a run, after the one of the specified rule that it holds: shares in percent, latencies in ms."""
    if SPECIFIED in report:
        show_report(report[SPECIFIED])
    console.print(
        f"{visible(report['corpus'])}, {visible(report['embedder'])}: score_model {report['score_model']}, "
        f"plan_model {report['plan_model']}, at most {report['max_frac']:g} of a plan from one source; "
        f"{report['asked']} questions{_beside(report)}",
        soft_wrap=True,
    )
    emit_table(_by_budget(report))
    ranking = ", ".join(f"{name} {_percent(report['ranking'][name])}" for name in RANKING)
    console.print(f"ranking: {ranking}", soft_wrap=True)
    if "ablations" in report:
        emit_table(_ablations(report["ablations"]))
        console.print("Points that the model without a part gains in evidence / all of it.", soft_wrap=True)
    emit_table(_latencies(report["latency_ms"]))


def show_sweep(swept: Report) -> None:
    """Print what caps and units bring, a bar for each share."""
    console.print(
        f"{visible(swept['corpus'])}, {visible(swept['embedder'])}: score_model {swept['score_model']}, "
        f"plan_model {swept['plan_model']}; {swept['asked']} questions",
        soft_wrap=True,
    )
    emit_table(_curves("selected under cap", swept["caps"], "evidence_recall"))
    emit_table(_curves("sources under cap", swept["caps"], "distinct_sources"))
    if swept["units"]:
        console.print(f"delivered, at most {swept['max_frac']:g} of a plan from one source", soft_wrap=True)
        emit_table(_curves("evidence by unit", swept["units"], "evidence_recall"))
        if any(cell["answers"] for cells in swept["units"].values() for cell in cells.values()):
            emit_table(_curves("answer by unit", swept["units"], "answer_in_context"))


def show_differences(differences: Sequence[Difference]) -> None:
    """Print what differs, cell by cell."""
    table = _table("corpus", "budget", "of", "metric", "A", "B", "B - A", "better", "worse", "p", "")
    for one in differences:
        figures = (_percent(one.a), _percent(one.b), f"{100 * (one.b - one.a):+.1f}")
        counts = (str(one.better), str(one.worse), f"{one.p:.2g}")
        what = (visible(one.corpus), str(one.budget), one.unit or "selected", one.metric)
        table.add_row(*what, *figures, *counts, one.verdict)
    emit_table(table)
    console.print(
        "Percent, over the questions that both have; p: exact sign test over the questions that changed, "
        "for each line alone.",
        soft_wrap=True,
    )


def show_check(checked: Checked) -> None:
    """Print what fell below the baseline, and the questions that got worse."""
    for fall in checked.falls:
        now = "not measured" if fall.now is None else _percent(fall.now)
        line = f"fell: {visible(fall.configuration)}: {fall.figure} was {_percent(fall.was)}, is {now}"
        console.print(line, soft_wrap=True)
    console.print(
        f"{len(checked.falls)} of {checked.figures} figures fell below the baseline", soft_wrap=True
    )
    if not checked.worse:
        return
    console.print(f"{len(checked.worse)} times a question got less than in the baseline:", soft_wrap=True)
    table = _table("question", "category", "budget", "of", "evidence", "was", "is", "answer")
    for one in checked.worse[:LISTED]:
        counts = (str(one.evidence), str(one.was), str(one.now))
        name = (visible(one.question), visible(one.category), str(one.budget), one.unit or "selected")
        table.add_row(*name, *counts, "lost" if one.answer_lost else "")
    emit_table(table)
    if len(checked.worse) > LISTED:
        console.print(f"and {len(checked.worse) - LISTED} more (--json lists all)")


def _by_budget(report: Report) -> Table:
    table = _table("budget", "of", *QUALITY, *SHARES, "sources", "gap", "empty")
    for budget, cell in report["budgets"].items():
        shares = [_percent(cell[name]) for name in SHARES.values()]
        others = (f"{cell['distinct_sources']:.1f}", _percent(cell["optimality_gap"]), str(cell["empty"]))
        table.add_row(budget, "selected", *_quality(cell), *shares, *others)
        for unit, bundle in cell["delivered"].items():
            table.add_row(budget, f"by {unit}", *_quality(bundle), _percent(bundle["utilisation"]))
    return table


def _ablations(ablations: Mapping[str, Mapping[str, Any]]) -> Table:
    budgets = list(next(iter(ablations.values())))
    table = _table("without", *budgets)
    for name, cells in ablations.items():
        table.add_row(name, *(_points(cells[budget]["difference"]) for budget in budgets))
    return table


def _points(difference: Mapping[str, float | None]) -> str:
    shares = (difference["evidence_recall"], difference["all_evidence"])
    return " / ".join("" if share is None else f"{100 * share:+.1f}" for share in shares)


def _curves(name: str, rows: Mapping[str, Mapping[str, Any]], figure: str) -> Table:
    budgets = list(next(iter(rows.values())))
    table = _table(name, *budgets)
    for row, cells in rows.items():
        table.add_row(row, *(_drawn(cells[budget][figure], figure) for budget in budgets))
    return table


def _drawn(value: float | None, figure: str) -> str:
    if value is None or figure == "distinct_sources":
        return "" if value is None else f"{value:.1f}"
    return f"{_percent(value)} {bar(value, BAR)}"


def _beside(report: Report) -> str:
    others = [visible(name) for name in report.get("together", ()) if name != report["corpus"]]
    return f", in one scope with {', '.join(others)}" if others else ""


def _latencies(stages: Mapping[str, Mapping[str, float]]) -> Table:
    table = _table("ms", "p50", "p95", "p99")
    for stage, cuts in stages.items():
        table.add_row(stage, *(f"{value:.1f}" for value in cuts.values()))
    return table


def _quality(cell: Mapping[str, Any]) -> list[str]:
    return [_percent(cell[name]) for name in QUALITY.values()]


def _table(*names: str) -> Table:
    table = Table(box=None)
    for name in names:
        words = name in WORDS
        table.add_column(name, justify="left" if words else "right", no_wrap=not words, overflow="fold")
    return table


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"
