"""Why, read top to bottom: what is meant, what carries it, what recall missed of that, and then the answers.

The plan itself is read from its trace; the store is asked, as of the plan, only about what the trace does not
hold. However much is asked about, the number of statements is constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from planner.engine import Engine
from planner.ingest import scope_id as id_of_scope
from planner.pipeline.deliver import read_deliveries
from planner.pipeline.explain import read_record
from planner.pipeline.inquiry import Inquiry
from planner.selection.counterfactual import Counterfactual, counterfactual
from planner.selection.pool import rank_pool
from planner.store.connect import run
from planner.store.retry import retried
from planner.trace.explain import fate, furthest_first, missed
from planner.trace.findings import Findings
from planner.trace.phrase import checked
from planner.trace.sentences import UNKNOWN, failed, sentence, summary
from planner.trace.why import BY_BUDGET, Answer, Fate, Stage, Target, Why
from planner.types import PlanRef

MAX_ANSWERS = 20
"""How many spans are answered; how many more there are is said."""


@retried
def why(engine: Engine, ref: PlanRef, what: str) -> Why:
    """Say at which stage of a plan a span, a node, a source or a phrase fell, or that it was selected.

    `what` is a span `source@tx:start-end`, a node id, a source id or a phrase, in that order. What is of
    another scope is unknown. Raises RequestError, UnknownPlan, IntegrityError, StoreError.
    """
    asked = checked(what)
    scope_id = id_of_scope(ref.scope)
    with engine.store.scoped(scope_id, "reader", snapshot=True) as conn:
        record = read_record(conn, scope_id, ref)
        if record.outcome == "failed":
            return Why(ref, what, None, record.outcome, failed(record))
        rows = run(conn, "plan_nodes", {"scope_id": scope_id, "plan_id": ref.plan_id}).fetchall()
        found = Findings.from_rows(record, rows, read_deliveries(conn, scope_id, ref))
        inquiry = Inquiry(conn, engine, scope_id, found)
        subject = inquiry.resolve(asked, MAX_ANSWERS)
        targets = inquiry.targets(subject)
        beyond = inquiry.missed(missed(found, targets))
    if subject.resolved_as is None:
        nothing = Answer(None, Fate(Stage.UNKNOWN), UNKNOWN)
        return Why(ref, what, None, record.outcome, UNKNOWN, (nothing,), {Stage.UNKNOWN.value: 1})
    fates = sorted(((t, fate(t, found, beyond)) for t in targets), key=furthest_first(found))
    answers = _answers(found, fates[:MAX_ANSWERS])
    stages = dict(Counter(reached.stage.value for _, reached in fates))
    unlisted = subject.total - len(targets)
    said = (
        answers[0].sentence if subject.total == 1 else summary(asked, subject.resolved_as, stages, unlisted)
    )
    return Why(
        plan=ref,
        what=what,
        resolved_as=subject.resolved_as,
        outcome=record.outcome,
        sentence=said,
        answers=answers,
        stages=stages,
        more=subject.total - len(answers),
    )


def _answers(found: Findings, fates: Sequence[tuple[Target, Fate]]) -> tuple[Answer, ...]:
    """Put fates into words; what the budget kept out gets the values that would have sufficed."""
    record = found.record
    rejected = [target.ref for target, reached in fates if target.ref and reached.stage in BY_BUDGET]
    sufficient: dict[Any, Counterfactual] = {}
    if rejected:
        pool = rank_pool([v.candidate for v in record.selection.verdicts], record.policy)
        sufficient = {ref: counterfactual(pool, record.selection.budget, ref) for ref in rejected}
    nothing = Counterfactual()
    return tuple(
        Answer(
            t.ref, reached, sentence(reached, sufficient.get(t.ref, nothing)), sufficient.get(t.ref, nothing)
        )
        for t, reached in fates
    )
