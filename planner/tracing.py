"""The part of the front door that asks about plans that are made already; `Planner` is the whole of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from planner.engine import Engine
from planner.errors import RequestError
from planner.pipeline import explain, prune, verify
from planner.pipeline.citation import verify_citation
from planner.pipeline.plans import PlanPage, plans
from planner.pipeline.prune import Prunable, Pruned
from planner.pipeline.replan import replan
from planner.pipeline.whatif import whatif
from planner.pipeline.why import why
from planner.ports import Rescorer
from planner.request import SCOPE_PATTERN
from planner.trace.citation import Citation
from planner.trace.diff import Diff
from planner.trace.drift import Replan
from planner.trace.replay import Replay
from planner.trace.verify import LedgerVerified, PlanVerified
from planner.trace.whatif import WhatIf
from planner.trace.why import Why
from planner.types import EvidencePlan, PlanRef, SpanRef


class Tracing:
    """Asks stored plans: what they were, why, whether they hold, what they would be otherwise."""

    engine: Engine

    def load(self, ref: str | PlanRef) -> EvidencePlan:
        """Return a stored plan by `<scope>:<plan_id>`. Raises UnknownPlan."""
        return explain.load(self.engine, plan_ref(ref))

    def plans(
        self,
        scope: str,
        *,
        after: str | None = None,
        limit: int = 50,
        outcome: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
    ) -> PlanPage:
        """Return a page of a scope's plans, newest first, from beyond the plan id `after`.

        Those of one `outcome` (planned, refused, failed), made from `since` on and before `until` (to the
        millisecond), whose question holds `text`, whatever its case. Raises RequestError, UnknownScope.
        """
        return plans(
            self.engine,
            check_scope(scope),
            after=after,
            limit=limit,
            outcome=outcome,
            since=since,
            until=until,
            text=text,
        )

    def replay(self, ref: str | PlanRef) -> Replay:
        """Decide a stored plan again from its candidates. Raises UnknownPlan, ReplayMismatch."""
        return explain.replay(self.engine, plan_ref(ref))

    def why(self, ref: str | PlanRef, what: str) -> Why:
        """Say where in a stored plan a span, a node, a source or a phrase fell, or that it was selected.

        Raises RequestError, UnknownPlan.
        """
        return why(self.engine, plan_ref(ref), what)

    def replan(self, ref: str | PlanRef, *, rescore: Rescorer | None = None, keep: bool = False) -> Replan:
        """Make a stored plan again as of its transaction: the same hashes, or what drifted.

        Writes nothing unless `keep`, which persists the new plan. Raises RequestError, UnknownPlan,
        IntegrityError where the trace was changed, StoreError.
        """
        return replan(self.engine, plan_ref(ref), rescore, keep=keep)

    def diff(self, a: str | PlanRef, b: str | PlanRef) -> Diff:
        """Say what entered, left or moved from one plan to another of its scope, and why.

        Raises RequestError, UnknownPlan.
        """
        return verify.compare(self.engine, plan_ref(a), plan_ref(b))

    def verify_plan(self, ref: str | PlanRef) -> PlanVerified:
        """Examine a stored plan and the bytes beneath it. Raises UnknownPlan."""
        return verify.verify_plan(self.engine, plan_ref(ref))

    def verify_citation(
        self, plan: str | PlanRef | EvidencePlan, quote: str, evidence: str | SpanRef
    ) -> Citation:
        """Say whether a quote is in the evidence that it cites, as `E<rank>` or by its span.

        Exact, after Unicode NFC and folding of white space, in the text that the store holds now; derived
        text supports nothing. Raises RequestError, UnknownPlan, IntegrityError.
        """
        made = plan if isinstance(plan, EvidencePlan) else plan_ref(plan)
        return verify_citation(self.engine, made, quote, str(evidence))

    def verify_ledger(self, scope: str) -> LedgerVerified:
        """Examine the hash chain of a scope's ledger. Raises UnknownScope."""
        return verify.verify_ledger(self.engine, check_scope(scope))

    def whatif(
        self,
        changes: Mapping[str, Any],
        *,
        plans: Sequence[str | PlanRef] = (),
        scopes: Sequence[str] = (),
        since: timedelta | None = None,
    ) -> WhatIf:
        """Decide stored pools again with other settings: `whatif({"budget": 2000}, scopes=["notes"])`.

        Plans are named, or those of `scopes` made in the last `since`. Raises RequestError, SettingsError,
        UnknownPlan, UnknownScope.
        """
        refs, names = [plan_ref(ref) for ref in plans], [check_scope(scope) for scope in scopes]
        return whatif(self.engine, changes, plans=refs, scopes=names, since=since)

    def prunable_trace(self, before: datetime, scope: str | None = None) -> Prunable:
        """Count the plans and deliveries made before a time. Raises RequestError, UnknownScope."""
        return prune.prunable(self.engine, before, scope)

    def prune_trace(self, before: datetime, scope: str | None = None) -> Pruned:
        """Delete the plans and deliveries made before a time. Raises RequestError, UnknownScope."""
        return prune.prune(self.engine, before, scope)


def check_scope(name: str) -> str:
    """Return a scope's name. Raises RequestError where it is not one."""
    if not isinstance(name, str) or re.fullmatch(SCOPE_PATTERN[1:-1], name) is None:
        raise RequestError(f"{name!r} is not a scope name; it must match {SCOPE_PATTERN}", field="scope")
    return name


def plan_ref(ref: str | PlanRef) -> PlanRef:
    """Return a plan's reference. Raises RequestError where it is not one."""
    wanted = ref if isinstance(ref, PlanRef) else PlanRef.parse(ref)
    check_scope(wanted.scope)
    return wanted
