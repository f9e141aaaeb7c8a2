"""What a score by `score_model: v2` is made of, in words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

GRID = 256
"""The trace holds terms as multiples of 1/256 (planner/recall/v2)."""

TRACED = 128
"""How many nodes, the best, keep the terms of their score in the trace."""

_WORDS: Mapping[str, str] = {
    "cos": "similarity",
    "lex": "words (BM25)",
    "cov": "share of the question's words",
    "rarest": "its rarest word",
    "title": "title in the question",
    "titlefull": "whole title in the question",
    "pair": "adjacent words",
    "prev": "the text before",
    "nbnew": "words that only its neighbours have",
    "spk": "speaker",
    "mention": "named or linked by a hit",
    "prf": "words of the hits",
    "joint": "completes a hit",
    "names": "names of a hit",
}


def traced(recall: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what recall says of itself as it is recorded: terms of the best nodes alone, no raw scores."""
    said = recall.get("terms")
    if said is None:
        return recall
    best = dict(islice(said["of"].items(), TRACED))
    return {**{k: v for k, v in recall.items() if k != "bm25"}, "terms": {**said, "of": best}}


def terms_of(recall: Mapping[str, Any], node_id: str | None) -> dict[str, dict[str, float]] | None:
    """Return the value and the weight of each term of a node's score where neither is 0; None if unknown."""
    said = recall.get("terms")
    if said is None or node_id not in said["of"]:
        return None
    rows = zip(said["names"], said["of"][node_id], said["weights"], strict=True)
    return {
        name: {"value": value / GRID, "weight": weight / said["per"]}
        for name, value, weight in rows
        if value and weight
    }


def told(terms: Mapping[str, Mapping[str, float]]) -> str:
    """Say what a score is made of, what counts most first, each as weight by value."""
    parts = sorted(terms.items(), key=lambda item: (-abs(item[1]["weight"] * item[1]["value"]), item[0]))
    said = [f"{_WORDS.get(name, name)} {t['weight']:.2f} × {t['value']:.2f}" for name, t in parts]
    total = sum(t["weight"] * t["value"] for t in terms.values())
    return f"Its score of {total:.2f}: {', '.join(said) or 'nothing speaks for it'}."
