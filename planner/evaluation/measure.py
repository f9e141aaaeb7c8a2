"""From a corpus to its reports: the rule as it is specified beside what else is asked for, in one store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.evaluation.corpora import Corpus
from planner.evaluation.report import SPECIFIED, report
from planner.evaluation.runner import evaluate_together
from planner.settings import Settings

SPECIFIED_RULE: Mapping[str, Any] = {"score_model": "v1", "plan_model": "v1", "max_frac_per_source": 0.4}
"""The rule as recall.md and selection.md have it."""


def measure(
    corpus: Corpus, url: str, variants: Sequence[Settings], *, specified: bool = True, **how: Any
) -> list[dict[str, Any]]:
    """Return a report a variant; the first holds that of the specified rule, unless it is among them.

    `how` are the arguments of `evaluate_together`, which says what is raised.
    """
    return measure_together((corpus,), url, variants, specified=specified, **how)


def measure_together(
    corpora: Sequence[Corpus], url: str, variants: Sequence[Settings], *, specified: bool = True, **how: Any
) -> list[dict[str, Any]]:
    """Return the same for corpora that share one store, corpus by corpus."""
    rule = variants[0].model_copy(update=dict(SPECIFIED_RULE))
    beside = [rule] if specified and rule not in variants else []
    reports = []
    for runs in evaluate_together(corpora, url, [*beside, *variants], **how):
        of_corpus = [report(one) for one in runs]
        if beside:
            first = of_corpus.pop(0)
            of_corpus[0][SPECIFIED] = first
        reports += of_corpus
    return reports
