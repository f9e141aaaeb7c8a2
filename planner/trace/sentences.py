"""What became of a span in plain words, with the figures that decided it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.selection.counterfactual import Counterfactual
from planner.trace.record import Record
from planner.trace.scoring import told
from planner.trace.why import BY_BUDGET, Facts, Fate, Stage

UNKNOWN = "This scope has no span, node or source of this name, and no text that holds this phrase."
STALE = "what it was made from had a newer version by then, or was withdrawn or erased"
"""What it means that a cache was stale as of a plan."""

_SELECTED = (
    "It is selected, number {number} of {selected}, with a weight of {weight:.4f}: {tokens} of the "
    "{used} tokens used, in a budget of {budget}."
)
_LEFT_OUT: Mapping[str, str] = {
    "over_budget": "it did not fit into what was left of the budget",
    "over_source_cap": "its source would have had more than the share of one",
}
_DELIVERIES = 3
"""How many deliveries of a span are told, the last ones."""

_TEMPLATES: Mapping[Stage, str] = {
    Stage.FILTERED_BY_MUST: "The `must` of the request does not let its node pass.",
    Stage.CUT_MAX_NODES: (
        "Its node was found, as number {position} of {nodes} with a score of {score:.4f}; "
        "only the best {max_nodes} go on (max_nodes)."
    ),
    Stage.CUT_MIN_SCORE: "It was found with a score of {score:.4f}, below the min_score of {min_score}.",
    Stage.CUT_MAX_SPANS: (
        "It was found with a score of {score:.4f}; the {max_spans} spans kept are better (max_spans)."
    ),
    Stage.DUPLICATE: (
        "It repeats {duplicate_of}, which ranks before it and whose own outcome is {duplicate_of_outcome}."
    ),
    Stage.UNPACKABLE: "It takes {tokens} tokens, more than the whole budget of {budget}.",
    Stage.OVER_BUDGET: (
        "It takes {tokens} tokens, more than was left of the budget of {budget} when its turn came; "
        "{used} are used in the end."
    ),
    Stage.OVER_SOURCE_CAP: (
        "It takes {tokens} tokens, more than was left of the {cap} that one source may take of {budget}; "
        "its source has {source_used} in the end."
    ),
    Stage.UNSLICEABLE: (
        "Its text cannot be cut out of its source: the version is missing, erased or shorter, or an end of "
        "the span falls inside a character."
    ),
    Stage.NOT_DELIVERED: _SELECTED,
    Stage.SELECTED: _SELECTED,
}


def failed(record: Record) -> str:
    """Say that a plan failed before anything was decided, and why."""
    error = record.error or {}
    return f"The plan failed before anything was decided ({error.get('code')}): {error.get('detail')}"


def sentence(fate: Fate, sufficient: Counterfactual) -> str:
    """Return one answer in words."""
    facts = fate.facts
    parts = []
    if "asked" in facts:
        parts.append(f"The text of {facts['asked']} takes part by the equal span of another version.")
    made = _MADE.get(fate.stage)
    number = facts.get("order", 0) + 1
    parts.append(made(facts) if made else _TEMPLATES[fate.stage].format(**facts, number=number))
    if "terms" in facts:
        parts.append(told(facts["terms"]))
    if "structured_limit" in facts:
        limit = facts["structured_limit"]
        parts.append(f"It satisfies `match`, but is not among the first {limit} that do (structured_limit).")
    parts += [_delivery(one) for one in facts.get("deliveries", ())[-_DELIVERIES:]]
    if fate.stage in BY_BUDGET:
        parts.append(_sufficient(sufficient))
    if "stale" in facts:
        parts.append(f"It is derived text and was stale: {STALE}.")
    if "erased_tx" in facts:
        parts.append(f"Its text and its vector were erased at transaction {facts['erased_tx']}.")
    return " ".join(parts)


def summary(name: str, resolved_as: str, stages: Mapping[str, int], unlisted: int) -> str:
    """Say how many spans ended at which stage; of a phrase's spans, `unlisted` have not been looked at."""
    total = sum(stages.values())
    counted = f"{total + unlisted} span{'' if total + unlisted == 1 else 's'}"
    subject = "The phrase is in" if resolved_as == "phrase" else f"The {resolved_as} {name} has"
    fates = ", ".join(f"{count} {stage.replace('_', ' ')}" for stage, count in stages.items())
    looked = f", of which the first {total} were looked at" if unlisted else ""
    return f"{subject} {counted}{looked}{': ' if fates else ''}{fates}."


def _delivery(facts: Facts) -> str:
    about = f"Delivery {facts['delivery']} (unit {facts['unit']}, {facts['budget']} tokens)"
    if "delivered_as" in facts:
        return f"{about} has it, as a {facts['delivered_as']}."
    return f"{about} left it out: {_LEFT_OUT[facts['skipped']]}."


def _sufficient(values: Counterfactual) -> str:
    ways = []
    if values.sufficient_budget is not None:
        ways.append(f"a requested budget of {values.sufficient_budget} tokens")
    if values.sufficient_max_frac is not None:
        ways.append(f"a max_frac_per_source of {values.sufficient_max_frac}")
    if not ways:
        return "No budget that may be asked for and no larger share of one source was found to suffice alone."
    return f"All else equal, {' or '.join(ways)} suffices."


def _window(facts: Facts) -> str:
    window: dict[str, Any] = facts["window"]
    ends = [f"{word} {window[word]}" for word in ("from", "to") if window.get(word)]
    return f"Its node lies outside the window on {window['axis']} time ({' '.join(ends)})."


def _not_current(facts: Facts) -> str:
    as_of = f"the plan is made as of transaction {facts['as_of']}"
    if facts["reason"] == "not_yet_known":
        return f"It was not yet known: it came with transaction {facts['since_tx']}, {as_of}."
    ended = f"at transaction {facts['until_tx']}; {as_of}"
    if facts["reason"] == "erased":
        return f"Its source version was erased, and its node ended {ended}."
    if facts["reason"] == "superseded":
        newer = facts["source_version_tx"]
        return f"It was superseded {ended}, when version {newer} of its source is the newest."
    return f"Its node ended {ended}."


def _below_top_k(facts: Facts) -> str:
    similarity, rank, of, k = (facts[name] for name in ("similarity", "rank", "of", "k"))
    place = f"Its similarity to the question is {similarity:.4f}, which ranks it {rank} of {of}"
    taken = f"; the best {k} are taken (k)"
    if rank <= k:
        taken = f", within the best {k} (k), but the approximate index did not return it"
    return f"{place}{taken}. {_unreached(facts['expansion'])}"


def _beyond_expansion(facts: Facts) -> str:
    asked = (
        "Its node has no vector to compare with the question."
        if facts["semantic"]
        else "The plan compared no vectors, since nothing was asked that has one."
    )
    return f"{asked} {_unreached(facts)}"


def _unreached(facts: Facts) -> str:
    hops, roots, fanout = (facts[name] for name in ("hops", "roots", "fanout"))
    reasons = {
        "off": "The graph was not followed (hops = 0).",
        "no_roots": "Nothing was found from which the graph could have been followed.",
        "hops": f"No path of at most {hops} hops leads to it from what was found (hops).",
        "roots": f"A path leads to it from a node that was found, but not among the best {roots} (roots).",
        "fanout": f"A path leads to it, but by an edge beyond the first {fanout} of a node (fanout).",
    }
    return reasons[facts["reason"]]


def _no_provenance(facts: Facts) -> str:
    if facts["carried"]:
        return "The node was found, but stands for no span of any source (no provenance)."
    return "It is in the ledger, but no node has it among its provenance, so no plan can find it."


_MADE: Mapping[Stage, Callable[[Facts], str]] = {
    Stage.UNKNOWN: lambda _: UNKNOWN,
    Stage.OUTSIDE_WINDOW: _window,
    Stage.NOT_CURRENT: _not_current,
    Stage.BELOW_TOP_K: _below_top_k,
    Stage.BEYOND_EXPANSION: _beyond_expansion,
    Stage.NO_PROVENANCE: _no_provenance,
}
