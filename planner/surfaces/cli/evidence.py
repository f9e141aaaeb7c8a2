"""How a plan looks to people: its budget by source, what it selected, what it left out and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.table import Table
from rich.text import Text

from planner.surfaces.cli.output import bar, console, emit_indented, emit_table, excerpt, visible
from planner.trace.delivery import DeliveryRecord
from planner.trace.sentences import STALE
from planner.trace.told import (
    budget_told,
    counted,
    counts_told,
    delivery_told,
    density,
    kind_told,
    taken_by_source,
    walked,
)
from planner.types import EvidencePlan, Outcome, PlannedSpan, SpanRef

EXCERPT_CHARS = 240


def show_header(plan: EvidencePlan) -> None:
    """Print the question, the plan's reference, and what came of it where nothing was planned."""
    question = plan.request.get("text")
    if question:
        console.print(Text(visible(question, keep="\n"), style="bold"))
    console.print(f"plan {plan.ref}, as of transaction {plan.as_of}", soft_wrap=True)
    if plan.error is not None:
        console.print(visible(f"{plan.outcome}: {plan.error['detail']}"), soft_wrap=True)


def show_budget(plan: EvidencePlan) -> None:
    """Print how the budget came about, and how much of it each source took, against the cap."""
    console.print(budget_told(plan))
    budget, taken = plan.budget, taken_by_source(plan)
    table = Table(box=None)
    table.add_column("source", overflow="fold")
    table.add_column("budget │ cap", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    whole = max(1, budget.budget)
    for source, tokens in taken.items():
        table.add_row(visible(source), bar(tokens / whole, mark=budget.cap / whole), str(tokens))
    if taken:
        emit_table(table)


def show_evidence(plan: EvidencePlan, limit: int | None = None) -> None:
    """Print the selected spans, at most `limit`, in selection order, each with the beginning of its text."""
    stale = plan.stale
    for number, span in enumerate(plan.spans[:limit], start=1):
        candidate, weight = span.verdict.candidate, span.verdict.weight
        head = f"{number:>3}  {visible(str(candidate.ref))}"
        about = f"{kind_told(candidate, stale)}, weight {weight:.4f}, {counted(candidate.tokens, 'token')}"
        console.print(Text.assemble((head, "bold"), f"  {about}"), soft_wrap=True)
        text = "(erased)" if span.text is None else excerpt(span.text, EXCERPT_CHARS)
        emit_indented(text, 5)
    if limit is not None and len(plan.spans) > limit:
        console.print(f"     and {len(plan.spans) - limit} more")


def show_counts(plan: EvidencePlan) -> None:
    """Print how many candidates were selected, and what became of the rest."""
    console.print(counts_told(plan))


def show_hashes(plan: EvidencePlan) -> None:
    """Print what proves the plan."""
    if plan.plan_hash is not None:
        console.print(f"plan_hash {plan.plan_hash}", soft_wrap=True)
        console.print(f"pool_hash {plan.pool_hash}", soft_wrap=True)


def show_deliveries(deliveries: Sequence[DeliveryRecord]) -> None:
    """Print what was delivered of a plan, a line each."""
    for delivery in deliveries:
        console.print(f"delivery {delivery.delivery_id}: {delivery_told(delivery)}", soft_wrap=True)


def show_timings(plan: EvidencePlan) -> None:
    """Print how long each stage took, as the trace keeps it."""
    stages = ", ".join(f"{stage} {took:.1f}" for stage, took in plan.timings.items())
    console.print(f"milliseconds: {stages}", soft_wrap=True)


def show_walk(plan: EvidencePlan, rejected: int) -> None:
    """Print the selected spans, the cut line, and the first of the rejected in the order of packing."""
    stale = plan.stale
    emit_table(_walk_table(plan.spans, "selected", stale))
    left_over = walked(plan)
    cut = f"{plan.used} of {plan.budget.budget} tokens used"
    console.rule(f"cut: {cut}" if left_over else cut, style="")
    if left_over and rejected:
        emit_table(_walk_table(left_over[:rejected], "outcome", stale))
    if len(left_over) > rejected:
        console.print(f"{len(left_over) - rejected} more rejected (--rejected N shows more)")
    if stale:
        console.print(f"stale cache: {STALE}")


def _walk_table(spans: Sequence[PlannedSpan], fate: str, stale: Collection[SpanRef]) -> Table:
    table = Table(box=None)
    table.add_column("span", overflow="fold")
    table.add_column("kind")
    for name in ("weight", "tokens", "density"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(fate, overflow="fold")
    for span in spans:
        verdict, candidate = span.verdict, span.verdict.candidate
        said = verdict.outcome.value
        if verdict.outcome is Outcome.SELECTED:
            said = f"{(verdict.order or 0) + 1}{' (erased)' if span.text is None else ''}"
        if verdict.duplicate_of is not None:
            said = f"{said} of {verdict.duplicate_of}"
        table.add_row(
            visible(str(candidate.ref)),
            kind_told(candidate, stale),
            f"{verdict.weight:.4f}",
            str(candidate.tokens),
            f"{density(span):.6f}",
            visible(said),
        )
    return table
