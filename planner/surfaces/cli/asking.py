"""The options of a question, which `plan` and `context` share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from planner.surfaces.cli.requests import seed
from planner.surfaces.json_text import json_object

R = TypeVar("R")

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
Profile = Annotated[
    str | None, typer.Option(help="diverse or document: how much one source may take, within the setting.")
]
Method = Annotated[str | None, typer.Option(help="Vector search: auto, exact or ann.")]
Ungrounded = Annotated[
    bool, typer.Option("--allow-ungrounded", help="Return an empty plan where there is no evidence.")
]


def asking(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of a plan's request in place of its parameter `fields`, which they make."""
    own, options = _parameters(command), _parameters(_fields)
    at = [parameter.name for parameter in own].index("fields")
    names = [option.name for option in options]

    def run(**given: Any) -> R:
        fields = _fields(**{name: given.pop(name) for name in names})
        return command(fields=fields, **given)

    parameters = [*own[:at], *options, *own[at + 1 :]]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _fields(
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
    profile: Profile = None,
    method: Method = None,
    allow_ungrounded: Ungrounded = False,
) -> dict[str, Any]:
    """Return the fields of a plan's request that options set. Raises RequestError for what is no JSON."""
    tokens = {"budget_tokens": budget, "model": model, "context_window": context_window, "counter": counter}
    limits = {"profile": profile, "hops": hops, "k": k, "min_score": min_score, "as_of": as_of}
    how = {"plan_model": plan_model, "method": method, "allow_ungrounded": allow_ungrounded or None}
    graph = {"seeds": [seed(text) for text in seeds or ()] or None}
    written = given({"window": window, "match": match, "must": must})
    filters = {name: json_object(text, f"--{name}") for name, text in written.items()}
    return given({**tokens, **limits, **how, **graph, **filters})


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    return [p.replace(annotation=hints[p.name], kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
