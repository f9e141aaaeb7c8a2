"""How a plan looks to people: its budget by source, what it selected, what it left out and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.table import Table
from rich.text import Text

from planner.surfaces.cli.output import bar, console, emit_indented, emit_table, excerpt, visible
from planner.trace.delivery import DeliveryRecord
from planner.trace.sentences import STALE
from planner.types import Candidate, EvidencePlan, Outcome, PlannedSpan, SpanRef

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
    budget = plan.budget
    lines = [f"{plan.used} of {budget.budget} tokens, at most {budget.cap} from one source"]
    if budget.narrowed_by:
        lines.append(f"{budget.requested} requested, narrowed by {budget.narrowed_by}")
    if budget.estimate:
        lines.append(f"{budget.counter} estimates: a tenth of the budget is kept in reserve")
    else:
        lines.append(f"counted by {budget.counter}")
    console.print("; ".join(lines))
    taken: dict[str, int] = {}
    for span in plan.spans:
        candidate = span.verdict.candidate
        taken[candidate.source_id] = taken.get(candidate.source_id, 0) + candidate.tokens
    table = Table(box=None)
    table.add_column("source", overflow="fold")
    table.add_column("budget │ cap", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    whole = max(1, budget.budget)
    for source, tokens in sorted(taken.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(visible(source), bar(tokens / whole, mark=budget.cap / whole), str(tokens))
    if taken:
        emit_table(table)


def show_evidence(plan: EvidencePlan, limit: int | None = None) -> None:
    """Print the selected spans, at most `limit`, in selection order, each with the beginning of its text."""
    stale = plan.stale
    for number, span in enumerate(plan.spans[:limit], start=1):
        candidate, weight = span.verdict.candidate, span.verdict.weight
        head = f"{number:>3}  {visible(str(candidate.ref))}"
        tokens = f"{candidate.tokens} token{'s' if candidate.tokens != 1 else ''}"
        about = f"{_kind(candidate, stale)}, weight {weight:.4f}, {tokens}"
        console.print(Text.assemble((head, "bold"), f"  {about}"), soft_wrap=True)
        text = "(erased)" if span.text is None else excerpt(span.text, EXCERPT_CHARS)
        emit_indented(text, 5)
    if limit is not None and len(plan.spans) > limit:
        console.print(f"     and {len(plan.spans) - limit} more")


def show_counts(plan: EvidencePlan) -> None:
    """Print how many candidates were selected, and what became of the rest."""
    stats = plan.stats
    fates = [outcome.value for outcome in Outcome if outcome is not Outcome.SELECTED]
    rejected = ", ".join(f"{stats[fate]} {fate.replace('_', ' ')}" for fate in fates if stats[fate])
    console.print(
        f"{stats['selected']} of {stats['candidates']} candidates selected; rejected: {rejected or 'none'}"
    )


def show_hashes(plan: EvidencePlan) -> None:
    """Print what proves the plan."""
    if plan.plan_hash is not None:
        console.print(f"plan_hash {plan.plan_hash}", soft_wrap=True)
        console.print(f"pool_hash {plan.pool_hash}", soft_wrap=True)


def show_deliveries(deliveries: Sequence[DeliveryRecord]) -> None:
    """Print what was delivered of a plan, a line each."""
    for delivery in deliveries:
        about = f"{delivery.unit}, {delivery.used} of {delivery.budget} tokens by {delivery.counter}"
        parts = (
            f"{len(delivery.items)} pieces",
            f"{len(delivery.skipped)} skipped",
            f"{len(delivery.cuts)} cut",
        )
        console.print(f"delivery {delivery.delivery_id}: {about}; {', '.join(parts)}", soft_wrap=True)


def show_timings(plan: EvidencePlan) -> None:
    """Print how long each stage took, as the trace keeps it."""
    stages = ", ".join(f"{stage} {took:.1f}" for stage, took in plan.timings.items())
    console.print(f"milliseconds: {stages}", soft_wrap=True)


def show_walk(plan: EvidencePlan, rejected: int) -> None:
    """Print the selected spans, the cut line, and the first of the rejected in the order of packing."""
    stale = plan.stale
    emit_table(_walk_table(plan.spans, "selected", stale))
    left_over = sorted(plan.rejected, key=lambda span: _walk_order(span, plan.plan_model))
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
            _kind(candidate, stale),
            f"{verdict.weight:.4f}",
            str(candidate.tokens),
            f"{_density(span):.6f}",
            visible(said),
        )
    return table


def _kind(candidate: Candidate, stale: Collection[SpanRef]) -> str:
    if candidate.source_class == "truth":
        return candidate.kind
    return f"{candidate.kind}, {'stale ' if candidate.ref in stale else ''}cache"


def _density(span: PlannedSpan) -> float:
    return span.verdict.weight / max(1, span.verdict.candidate.tokens)


def _walk_order(span: PlannedSpan, plan_model: str) -> tuple[bool, float]:
    """Order what was packed before what never came to it; in rank order where this leaves a tie."""
    never = span.verdict.outcome in (Outcome.DUPLICATE, Outcome.UNSLICEABLE)
    return never, -_density(span) if plan_model == "v1" else 0.0
