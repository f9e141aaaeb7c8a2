"""Why a span is in a plan or not: from facts to the first stage at which it fell, with its figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from planner.errors import IntegrityError
from planner.recall.score import Floats, top_k
from planner.trace.findings import Findings, FoundNode
from planner.trace.scoring import terms_of
from planner.trace.why import DEPTH, Carrier, Facts, Fate, Missed, Ranked, Stage, Target
from planner.types import Outcome, SpanRef, Verdict


def ranks(node_ids: Sequence[str], similarities: Floats, wanted: frozenset[str]) -> dict[str, Ranked]:
    """Return the places of `wanted` in the order by which recall takes its k best."""
    order = top_k(node_ids, similarities, len(node_ids))
    return {
        node_ids[i]: Ranked(float(similarities[i]), place, len(order))
        for place, i in enumerate(order, start=1)
        if node_ids[i] in wanted
    }


def missed(found: Findings, targets: Sequence[Target]) -> frozenset[str]:
    """Return the nodes that could have been found and were not: what ranks and paths must be read of."""
    as_of = found.record.as_of
    return frozenset(
        carrier.node_id
        for target in targets
        if target.ref not in found.verdicts and target.ref not in found.cuts
        for carrier in target.carriers
        if _is_current(carrier, as_of) and carrier.restricted_in and carrier.node_id not in found.nodes
    )


def fate(target: Target, found: Findings, beyond: Missed) -> Fate:
    """Return the fate of a target: of the nodes that carry a span, the one that came furthest decides.

    Raises IntegrityError where the trace holds a node and not the span that it stands for.
    """
    decided = _in_trace(target.ref, found) if target.ref is not None else None
    if decided is None and not target.carriers:
        decided = Fate(Stage.NO_PROVENANCE, target.node_id, {"carried": False})
    if decided is None:
        fates = [_carried(carrier, target, found, beyond) for carrier in target.carriers]
        decided = min(fates, key=lambda f: (-DEPTH[f.stage], f.facts.get("rank", 0), f.node_id or ""))
    about = {
        "asked": str(target.asked) if target.asked else None,
        "erased_tx": target.erased_tx,
        "stale": True if target.ref in found.stale else None,
    }
    return replace(decided, facts={**decided.facts, **{k: v for k, v in about.items() if v is not None}})


def _in_trace(ref: SpanRef, found: Findings) -> Fate | None:
    verdict = found.verdicts.get(ref)
    if verdict is not None:
        facts = _figures(verdict, found)
        delivered = facts.get("deliveries")
        left_out = delivered and not any("delivered_as" in delivery for delivery in delivered)
        stage = Stage.NOT_DELIVERED if left_out else Stage(verdict.outcome.value)
        return Fate(stage, verdict.candidate.node_id, facts)
    if ref not in found.cuts:
        return None
    limit, score = found.cuts[ref]
    return Fate(Stage(f"cut_{limit}"), None, {"score": score, limit: found.request[limit]})


def _figures(verdict: Verdict, found: Findings) -> Facts:
    selection, candidate = found.record.selection, verdict.candidate
    facts: Facts = {
        "score": candidate.score,
        "weight": verdict.weight,
        "tokens": candidate.tokens,
        "budget": selection.budget.budget,
        "used": selection.used,
        "cap": selection.budget.cap,
        "source_used": sum(
            v.candidate.tokens for v in selection.selected if v.candidate.source_id == candidate.source_id
        ),
    }
    if verdict.outcome is Outcome.SELECTED:
        evidence = found.evidence[candidate.ref]
        delivered = [fate for delivery in found.deliveries if (fate := delivery.fate(evidence))]
        facts |= {"order": verdict.order, "selected": len(selection.selected), "evidence": evidence}
        facts |= {"deliveries": delivered} if delivered else {}
    terms = terms_of(found.record.recall, candidate.node_id)
    facts |= {} if terms is None else {"terms": terms}
    if verdict.duplicate_of is not None:
        original = found.verdicts[verdict.duplicate_of].outcome
        facts |= {"duplicate_of": str(verdict.duplicate_of), "duplicate_of_outcome": original.value}
    return facts


def _carried(carrier: Carrier, target: Target, found: Findings, beyond: Missed) -> Fate:
    as_of, request = found.record.as_of, found.request
    node = found.nodes.get(carrier.node_id) if _is_current(carrier, as_of) else None
    if node is not None:
        return _found(node, target, found)

    def fell(stage: Stage, facts: Facts) -> Fate:
        return Fate(stage, carrier.node_id, facts)

    if not carrier.passes_must:
        return fell(Stage.FILTERED_BY_MUST, {"must": request["must"]})
    over = {"structured_limit": request["structured_limit"]} if carrier.matches else {}
    if not carrier.restricted_in:
        return fell(Stage.OUTSIDE_WINDOW, {"window": request["window"], **over})
    if not _is_current(carrier, as_of):
        return fell(Stage.NOT_CURRENT, _absence(carrier, target, as_of))
    expansion = _unreached(carrier.node_id, found, beyond)
    ranked = beyond.ranks.get(carrier.node_id)
    if ranked is None:
        return fell(Stage.BEYOND_EXPANSION, {**expansion, "semantic": found.is_semantic, **over})
    place = {"similarity": ranked.similarity, "rank": ranked.rank, "of": ranked.of}
    place["k"] = found.record.recall.get("k", request["k"])
    method = {"method": found.record.recall["method"]}
    return fell(Stage.BELOW_TOP_K, {**place, **method, "expansion": expansion, **over})


def _found(node: FoundNode, target: Target, found: Findings) -> Fate:
    if target.ref is None:
        return Fate(Stage.NO_PROVENANCE, node.node_id, {"carried": True, "score": node.score})
    if not node.cut:
        raise IntegrityError(
            f"the trace of {found.record.ref} holds the node {node.node_id} but not its span {target.ref}",
            plan=str(found.record.ref),
        )
    facts = {"score": node.score, "position": node.position, "nodes": len(found.ranked)}
    return Fate(Stage.CUT_MAX_NODES, node.node_id, {**facts, "max_nodes": found.request["max_nodes"]})


def _absence(carrier: Carrier, target: Target, as_of: int) -> Facts:
    """Say why a version of a node is not current at `as_of`: not yet, erased, superseded, or ended."""
    if carrier.tx_from > as_of:
        return {"reason": "not_yet_known", "as_of": as_of, "since_tx": carrier.tx_from}
    ended = {"as_of": as_of, "until_tx": carrier.tx_to}
    if target.erased_tx is not None:
        return {"reason": "erased", **ended}
    if target.ref is not None and (target.source_tx or 0) > target.ref.version_tx:
        return {"reason": "superseded", **ended, "source_version_tx": target.source_tx}
    return {"reason": "ended", **ended}


def _unreached(node_id: str, found: Findings, beyond: Missed) -> Facts:
    """Say why expansion did not reach a node, and by which path it would have where there is one."""
    request = found.request
    limits: Facts = {name: request[name] for name in ("hops", "roots", "fanout", "direction")}
    if request["hops"] == 0:
        return {"reason": "off", **limits}
    if not found.roots:
        return {"reason": "no_roots", **limits}
    for is_root, reason in ((True, "fanout"), (False, "roots")):
        path = beyond.paths.get((node_id, is_root))
        if path is not None:
            return {"reason": reason, **limits, "path": list(path)}
    return {"reason": "hops", **limits}


def _is_current(carrier: Carrier, as_of: int) -> bool:
    return carrier.tx_from <= as_of < carrier.tx_to


def furthest_first(found: Findings) -> Callable[[tuple[Target, Fate]], tuple[Any, ...]]:
    """Return the order of answers: the best stage first, then as the pool ranks them, then by key."""
    last = len(found.verdicts)

    def key(answered: tuple[Target, Fate]) -> tuple[Any, ...]:
        target, reached = answered
        order = reached.facts.get("order", 0)
        rank = found.pool_rank.get(target.ref, last) if target.ref else last
        return (-DEPTH[reached.stage], order, rank, reached.facts.get("rank", 0), str(target.ref))

    return key
