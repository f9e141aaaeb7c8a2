"""A run as figures: the JSON document that is kept and compared, by budget, by category and by question."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from planner.evaluation import metrics
from planner.evaluation.ablation import Ablated
from planner.evaluation.asking import COUNTER, Asked, Got
from planner.evaluation.quality import average, difference, quality, recall, share
from planner.evaluation.runner import Run

Report = Mapping[str, Any]

SPECIFIED = "specified"
"""Where a report holds the one of the specified rule, in the same store."""

RANKING: Mapping[str, Callable[[metrics.Ranks], float]] = {
    "recall@5": partial(metrics.recall_at, k=5),
    "recall@10": partial(metrics.recall_at, k=10),
    "recall@20": partial(metrics.recall_at, k=20),
    "mrr": metrics.reciprocal_rank,
    "ndcg@10": partial(metrics.ndcg_at, k=10),
}
"""What is measured of the order of candidates, whatever the budget."""


def report(run: Run) -> dict[str, Any]:
    """Return the document of a run: shares from 0 to 1, milliseconds, and what came of each question.

    Recall, all-evidence and ranks are over the questions that have evidence, `answer_in_context` over those
    with a known answer (null where none is), everything else over all. `together` and `ablations` are there
    where they were asked for.
    """
    settings, asked = run.settings, run.asked
    budgets = [at.budget for at in asked[0].at] if asked else []
    further: dict[str, Any] = {}
    if run.together:
        further["together"] = list(run.together)
    if run.ablated:
        further["ablations"] = {one.name: _without(one, asked, budgets) for one in run.ablated}
    return {
        "corpus": run.corpus,
        "embedder": run.embedder,
        "score_model": settings.score_model,
        "plan_model": settings.plan_model,
        "max_frac": settings.max_frac_per_source,
        "units": list(run.units),
        "counter": COUNTER,
        "asked": len(asked),
        "budgets": {str(budget): _cell(asked, place) for place, budget in enumerate(budgets)},
        "categories": _by_category(asked, budgets),
        "ranking": _ranking(asked),
        **further,
        "latency_ms": {stage: metrics.percentiles(values) for stage, values in run.timings.items()},
        "results": {one.question.question_id: _result(one) for one in asked},
    }


def encoded(reports: Sequence[Report]) -> str:
    """Return one report, or a list of several, as JSON in which each question has a line of its own."""
    texts = [_encoded(one, "") for one in reports]
    return texts[0] if len(texts) == 1 else "[\n" + ",\n".join(texts) + "\n]"


def _encoded(one: Report, indent: str) -> str:
    inner = indent + " "
    lines = []
    for key, value in one.items():
        if key == SPECIFIED:
            text = _encoded(value, inner).lstrip()
        elif isinstance(value, dict) and value:
            entries = [f"{inner} {_json(name)}: {_json(entry)}" for name, entry in value.items()]
            text = "{\n" + ",\n".join(entries) + f"\n{inner}}}"
        else:
            text = _json(value)
        lines.append(f"{inner}{_json(key)}: {text}")
    return f"{indent}{{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _cell(asked: Sequence[Asked], place: int) -> dict[str, Any]:
    """Return everything about one budget."""
    figures = [one.at[place] for one in asked]
    return {
        **quality(_evidence(asked), [at.selected for at in figures]),
        "utilisation": average(at.selected.used / at.budget for at in figures),
        "distinct_sources": average(at.sources for at in figures),
        "redundant_bytes": average(at.redundant for at in figures),
        "stranded_budget": average(at.stranded / at.budget for at in figures),
        "optimality_gap": average(at.gap_ppm / 1_000_000 for at in figures),
        "empty": sum(at.sources == 0 for at in figures),
        "delivered": {
            unit: {
                **quality(_evidence(asked), [at.delivered[unit] for at in figures]),
                "utilisation": average(at.delivered[unit].used / at.budget for at in figures),
            }
            for unit in figures[0].delivered
        },
    }


def _without(ablated: Ablated, asked: Sequence[Asked], budgets: Sequence[int]) -> dict[str, Any]:
    """Return, by budget, what is found without a part, and its difference to the full model's."""
    out = {}
    for place, budget in enumerate(budgets):
        full = recall(_evidence(asked), [one.at[place].selected.found for one in asked])
        part = recall(_evidence(asked), [found[place] for found in ablated.found])
        less = {name: difference(part[name], full[name]) for name in part}
        out[str(budget)] = {**part, "difference": less}
    return out


def _by_category(asked: Sequence[Asked], budgets: Sequence[int]) -> dict[str, Any]:
    categories: dict[str, list[Asked]] = {}
    for one in asked:
        categories.setdefault(one.question.category, []).append(one)
    return {
        category: {
            str(budget): quality(_evidence(those), [one.at[place].selected for one in those])
            for place, budget in enumerate(budgets)
        }
        for category, those in sorted(categories.items())
    }


def _evidence(asked: Sequence[Asked]) -> list[int]:
    """Return how many items each question has."""
    return [len(one.ranks) for one in asked]


def _ranking(asked: Iterable[Asked]) -> dict[str, Any]:
    ranks = [one.ranks for one in asked if one.ranks]
    figures = {name: share(map(figure, ranks)) for name, figure in RANKING.items()}
    return {**figures, "questions": len(ranks)}


def _result(one: Asked) -> dict[str, Any]:
    """Return one question, its figures in the order of the budgets."""
    units = one.at[0].delivered
    return {
        "category": one.question.category,
        "evidence": len(one.ranks),
        "ranks": list(one.ranks),
        **_got([at.selected for at in one.at]),
        "delivered": {unit: _got([at.delivered[unit] for at in one.at]) for unit in units},
    }


def _got(texts: Sequence[Got]) -> dict[str, Any]:
    answered = [text.answered for text in texts if text.answered is not None]
    return {"found": [text.found for text in texts], "answered": [int(known) for known in answered] or None}
