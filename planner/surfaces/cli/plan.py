"""`planner plan`: the evidence for one question, or for each request of a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from planner.client import Planner
from planner.surfaces.cli import DONE, batch, evidence
from planner.surfaces.cli.database import opened
from planner.surfaces.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Overrides
from planner.surfaces.cli.output import console, emit_json
from planner.surfaces.cli.requests import json_object, seed
from planner.types import EvidencePlan

ScopeArgument = Annotated[
    str | None, typer.Argument(metavar="SCOPE", help="The scope's name.", show_default=False)
]
Question = Annotated[
    str | None, typer.Argument(metavar="QUESTION", help="What is asked.", show_default=False)
]
Budget = Annotated[int | None, typer.Option(help="Tokens to fill; default: default_budget.")]
Model = Annotated[str | None, typer.Option(help="The language model, for its context window and counter.")]
Window = Annotated[
    int | None, typer.Option(help="The model's context window; half of it is the most to fill.")
]
Counter = Annotated[str | None, typer.Option(help="Token counter; `planner doctor` lists them.")]
Times = Annotated[
    str | None,
    typer.Option(metavar="JSON", help='Times: {"axis": "valid" or "observed", "from": …, "to": …}.'),
]
Match = Annotated[str | None, typer.Option(metavar="JSON", help="A filter whose nodes are found as well.")]
Must = Annotated[str | None, typer.Option(metavar="JSON", help="A filter that everything found must pass.")]
Seeds = Annotated[
    list[str] | None,
    typer.Option("--seed", metavar="NODE[=SCORE]", help="A node to start from; repeatable; score 1.0."),
]
Hops = Annotated[int | None, typer.Option(help="Hops along the graph, 0 to 2.")]
TopK = Annotated[int | None, typer.Option("--k", help="Nearest nodes to take.")]
MinScore = Annotated[float | None, typer.Option(help="Leave out spans that score below, 0 to 1.")]
AsOf = Annotated[int | None, typer.Option(help="Plan as of this ledger transaction.")]
PlanModel = Annotated[str | None, typer.Option(help="v1 packs by density, v2 by rank.")]
Method = Annotated[str | None, typer.Option(help="Vector search: auto, exact or ann.")]
Ungrounded = Annotated[
    bool, typer.Option("--allow-ungrounded", help="Return an empty plan where there is no evidence.")
]
BatchFile = Annotated[
    str | None,
    typer.Option(
        "--batch", metavar="FILE", help="Plan each request of a file, a JSON object a line; - is stdin."
    ),
]


def plan(
    scope: ScopeArgument = None,
    question: Question = None,
    *,
    budget: Budget = None,
    model: Model = None,
    context_window: Window = None,
    counter: Counter = None,
    window: Times = None,
    match: Match = None,
    must: Must = None,
    seeds: Seeds = None,
    hops: Hops = None,
    k: TopK = None,
    min_score: MinScore = None,
    as_of: AsOf = None,
    plan_model: PlanModel = None,
    method: Method = None,
    allow_ungrounded: Ungrounded = False,
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
    tokens = {"budget_tokens": budget, "model": model, "context_window": context_window, "counter": counter}
    limits = {"hops": hops, "k": k, "min_score": min_score, "as_of": as_of}
    how = {"plan_model": plan_model, "method": method, "allow_ungrounded": allow_ungrounded or None}
    graph = {"seeds": [seed(text) for text in seeds or ()] or None}
    filters = _written_in_json({"window": window, "match": match, "must": must})
    fields = _given({**tokens, **limits, **how, **graph, **filters})
    if scope is None and batch_file is None:
        raise typer.BadParameter("give SCOPE and a question, or --batch FILE")
    if question is not None and batch_file is not None:
        raise typer.BadParameter("give a question or --batch FILE, not both")
    with opened(config, overrides, database_url, data_dir) as planner:
        if batch_file is not None:
            defaults = fields if scope is None else {"scope": scope, **fields}
            return batch.run(planner, batch_file, defaults)
        _plan_one(planner, {"scope": scope, "text": question, **fields}, as_json)
    return DONE


def show(plan: EvidencePlan) -> None:
    """Print a plan: the question, the budget by source, the evidence, and how to ask on."""
    evidence.show_header(plan)
    evidence.show_budget(plan)
    evidence.show_evidence(plan)
    evidence.show_counts(plan)
    evidence.show_hashes(plan)
    console.print(f"planner why {plan.ref} 'a phrase, a span, a node or a source'", soft_wrap=True)


def _plan_one(planner: Planner, request: dict[str, Any], as_json: bool) -> None:
    made = planner.plan(_given(request))
    if as_json:
        emit_json(made.to_dict())
    else:
        show(made)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _written_in_json(options: dict[str, str | None]) -> dict[str, Any]:
    return {name: json_object(text, f"--{name}") for name, text in _given(options).items()}
