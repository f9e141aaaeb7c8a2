"""`planner plan`: the evidence for one question, or for each request of a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from planner.surfaces.cli import DONE, batch, evidence
from planner.surfaces.cli.asking import asking, given
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides
from planner.surfaces.cli.output import console, emit_json
from planner.types import EvidencePlan

ScopeArgument = Annotated[
    str | None, typer.Argument(metavar="SCOPE", help="The scope's name.", show_default=False)
]
Question = Annotated[
    str | None, typer.Argument(metavar="QUESTION", help="What is asked.", show_default=False)
]
BatchFile = Annotated[
    str | None,
    typer.Option(
        "--batch", metavar="FILE", help="Plan each request of a file, a JSON object a line; - is stdin."
    ),
]


@asking
def plan(
    scope: ScopeArgument = None,
    question: Question = None,
    *,
    fields: dict[str, Any],
    batch_file: BatchFile = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> int:
    """Plan the evidence for a question within a budget of tokens, and keep the plan.

    A batch prints one JSON object a line, a plan or a problem, in the order of its requests; SCOPE and the
    options are the defaults of its lines. It ends with 3 where some failed.

    Filters: {"field": "kind", "op": "eq", "value": "code"}, {"all": […]}, {"any": […]}, {"not": …}.

    For example:

        planner plan notes "What did we decide about retries?" --budget 2000 --model gpt-4o

        planner plan notes "Who called?" --window '{"from": "2024-05-01T00:00:00Z"}' --json

        planner plan notes --batch questions.jsonl --budget 2000 > plans.jsonl
    """
    if scope is None and batch_file is None:
        raise typer.BadParameter("give SCOPE and a question, or --batch FILE")
    if question is not None and batch_file is not None:
        raise typer.BadParameter("give a question or --batch FILE, not both")
    with opened(config, overrides, database_url, data_dir) as planner:
        if batch_file is not None:
            defaults = fields if scope is None else {"scope": scope, **fields}
            return batch.run(planner, batch_file, defaults)
        made = planner.plan(given({"scope": scope, "text": question, **fields}))
    if as_json:
        emit_json(made.to_dict())
    else:
        show(made)
    return DONE


def show(plan: EvidencePlan) -> None:
    """Print a plan: the question, the budget by source, the evidence, and how to ask on."""
    evidence.show_header(plan)
    evidence.show_budget(plan)
    evidence.show_evidence(plan)
    evidence.show_counts(plan)
    evidence.show_hashes(plan)
    console.print(f"planner why {plan.ref} 'a phrase, a span, a node or a source'", soft_wrap=True)
