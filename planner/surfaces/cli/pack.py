"""`planner pack`: Phase B alone, for people who have their own retriever."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from planner.errors import RequestError, UnreadableInput
from planner.hashing import plan_hash, pool_hash
from planner.ports import Bound
from planner.selection.budget import resolve_budget
from planner.selection.jsonl import read_candidates
from planner.selection.select import insufficient, select
from planner.settings import Settings, load
from planner.surfaces.cli.output import bar, console, emit_json
from planner.tokens import CALLER
from planner.tokens import counter as counter_named
from planner.types import Candidate, Outcome, Selection, SelectionPolicy, Verdict, weight_bits

SCORE_MODEL = "external"


def pack(
    file: Annotated[str, typer.Argument(help="JSON lines, a candidate each; - reads standard input.")] = "-",
    budget: Annotated[int | None, typer.Option(help="Tokens to fill; default: default_budget.")] = None,
    counter: Annotated[
        str | None, typer.Option(help="Token counter for candidates that come with text.")
    ] = None,
    context_window: Annotated[
        int | None, typer.Option(min=1, help="The model's window in tokens; half of it is the most to fill.")
    ] = None,
    max_frac: Annotated[
        float | None, typer.Option(help="The most one source may take, above 0 to 1.")
    ] = None,
    plan_model: Annotated[str | None, typer.Option(help="v1 packs by density, v2 by rank.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file instead of planner.toml.")] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="The given tokens are estimates: keep a tenth in reserve.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Select from candidates of your own what fits a budget of tokens, and say what became of the rest.

    A line: {"source_id": "a.md", "version_tx": 1, "start": 0, "end": 90, "kind": "paragraph",
    "class": "truth", "score": 0.8, "tokens": 21} or "text" instead of "tokens".

    Example: planner pack candidates.jsonl --budget 2000 --max-frac 0.5
    """
    arguments = {"plan_model": plan_model, "max_frac_per_source": max_frac}
    settings = load(arguments, file=config).settings
    candidates, name, bound = _counted(_lines(file), settings, counter, estimate)
    resolved = resolve_budget(
        settings.default_budget if budget is None else budget,
        counter=name,
        bound=bound,
        max_frac=settings.max_frac_per_source,
        max_budget=settings.max_budget,
        context_window=context_window,
    )
    policy = SelectionPolicy(
        settings.kind_priors, settings.cache_discount, settings.dedup_overlap, settings.plan_model
    )
    selection = select(candidates, policy, resolved)
    refusal = insufficient(selection)
    if refusal is not None:
        raise refusal
    if as_json:
        emit_json(to_dict(selection, policy.plan_model))
    else:
        show(selection)


def to_dict(selection: Selection, plan_model: str) -> dict[str, Any]:
    """Return a selection as JSON data, its spans in selection order and the rest in rank order."""
    budget = selection.budget
    return {
        "budget_requested": budget.requested,
        "budget": budget.budget,
        "narrowed_by": budget.narrowed_by,
        "used": selection.used,
        "cap": budget.cap,
        "plan_hash": plan_hash(selection, plan_model=plan_model, score_model=SCORE_MODEL),
        "pool_hash": pool_hash(selection, plan_model=plan_model, score_model=SCORE_MODEL),
        "plan_model": plan_model,
        "score_model": SCORE_MODEL,
        "counter": budget.counter,
        "stats": {**selection.stats, "optimality_gap_ppm": selection.optimality_gap_ppm},
        "spans": [_span(verdict) for verdict in selection.selected],
        "rejected": [_rejected(verdict) for verdict in selection.rejected()],
    }


def show(selection: Selection) -> None:
    """Print the selected spans, the budget by source and the counts of what was rejected."""
    budget, stats = selection.budget, selection.stats
    spans = Table("span", "kind", "weight", "tokens", box=None)
    tokens_by_source: dict[str, int] = {}
    for verdict in selection.selected:
        candidate = verdict.candidate
        spans.add_row(str(candidate.ref), candidate.kind, f"{verdict.weight:.4f}", str(candidate.tokens))
        before = tokens_by_source.get(candidate.source_id, 0)
        tokens_by_source[candidate.source_id] = before + candidate.tokens
    console.print(spans)
    sources = Table("source", "share of the budget", "tokens", f"cap {budget.cap}", box=None)
    for source, tokens in sorted(tokens_by_source.items(), key=lambda item: (-item[1], item[0])):
        left = budget.cap - tokens
        sources.add_row(source, bar(tokens / max(1, budget.budget)), str(tokens), f"{left} left")
    console.print(sources)
    narrowed = f", narrowed by {budget.narrowed_by}" if budget.narrowed_by else ""
    console.print(f"{selection.used} of {budget.budget} tokens ({budget.counter}){narrowed}")
    fates = [o.value for o in Outcome if o is not Outcome.SELECTED]
    rejected = ", ".join(f"{stats[fate]} {fate}" for fate in fates if stats[fate])
    console.print(f"{stats['selected']} of {stats['candidates']} selected; rejected: {rejected or 'none'}")


def _lines(file: str) -> list[bytes]:
    if file == "-":
        if sys.stdin.isatty():
            raise typer.BadParameter("give a FILE, or pipe candidates to standard input")
        return sys.stdin.buffer.readlines()
    try:
        return Path(file).read_bytes().split(b"\n")
    except OSError as error:
        raise UnreadableInput(f"{file} cannot be read: {error.strerror}") from None


def _counted(
    lines: Sequence[bytes], settings: Settings, wanted: str | None, estimate: bool
) -> tuple[Sequence[Candidate], str, Bound]:
    """Return the candidates with their tokens, the counter's name and its bound."""
    parsed = read_candidates(lines, settings.kind_priors)
    if parsed.texts:
        if estimate:
            raise RequestError("--estimate is about tokens of your own; these candidates come with text")
        chosen = counter_named(wanted or settings.counter, {})
        return parsed.counted(chosen), chosen.name, chosen.bound
    if wanted not in (None, CALLER):
        raise RequestError(f"these candidates come with tokens of your own; {wanted!r} can only count text")
    return parsed.candidates, CALLER, "estimate" if estimate else "exact"


def _span(verdict: Verdict) -> dict[str, Any]:
    candidate = verdict.candidate
    return {
        "source_id": candidate.source_id,
        "version_tx": candidate.version_tx,
        "start": candidate.start,
        "end": candidate.end,
        "kind": candidate.kind,
        "class": candidate.source_class,
        "weight": verdict.weight,
        "weight_bits": weight_bits(verdict.weight),
        "tokens": candidate.tokens,
    }


def _rejected(verdict: Verdict) -> dict[str, Any]:
    out = {**_span(verdict), "outcome": verdict.outcome.value}
    return out if verdict.duplicate_of is None else {**out, "duplicate_of": str(verdict.duplicate_of)}
