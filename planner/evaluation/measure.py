"""From a corpus to its reports: the rule as it is specified beside what else is asked for, in one store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.evaluation.corpora import Corpus
from planner.evaluation.report import SPECIFIED, report
from planner.evaluation.runner import evaluate
from planner.settings import Settings

SPECIFIED_RULE: Mapping[str, Any] = {"score_model": "v1", "plan_model": "v1", "max_frac_per_source": 0.4}
"""The rule as recall.md and selection.md have it."""


def measure(
    corpus: Corpus, url: str, variants: Sequence[Settings], *, specified: bool = True, **how: Any
) -> list[dict[str, Any]]:
    """Return a report a variant; the first holds that of the specified rule, unless it is among them.

    `how` are the arguments of `evaluate`, which says what is raised.
    """
    rule = variants[0].model_copy(update=dict(SPECIFIED_RULE))
    beside = [rule] if specified and rule not in variants else []
    reports = [report(one) for one in evaluate(corpus, url, [*beside, *variants], **how)]
    if beside:
        first = reports.pop(0)
        reports[0][SPECIFIED] = first
    return reports
