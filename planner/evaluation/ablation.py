"""The model without one part at a time: what each leg of recall and each group of terms is good for.

A leg is left out through the same door as any caller's wish. Terms are left out by a weight of 0; the nodes
that were found for their sake stay candidates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from planner.client import Planner
from planner.evaluation import metrics
from planner.evaluation.asking import Labelled, planned, selected
from planner.evaluation.corpora import Question
from planner.evaluation.loading import Progress
from planner.evaluation.repack import Pool
from planner.ports import Embedder, Vectors
from planner.settings import Settings
from planner.types import EvidencePlan

LEGS: Mapping[str, str] = {
    "leg: semantic": "asked without a vector",
    "leg: lexical": "asked by the vector alone: no term of the question is known",
    "leg: expansion": "no hops: no neighbours and no links",
}
"""What is left out of recall, and how."""

TERMS: Mapping[str, tuple[str, ...]] = {
    "terms: cosine": ("cos",),
    "terms: BM25": ("lex",),
    "terms: question's mass": ("cov", "rarest"),
    "terms: title": ("title", "titlefull"),
    "terms: pairs": ("pair",),
    "terms: neighbours": ("prev", "nbnew"),
    "terms: speaker": ("spk",),
    "terms: links": ("mention", "joint", "names"),
    "terms: feedback": ("prf",),
}
"""The terms of `score_model: v2` (planner/recall/v2/weights.py), by what is left out together."""

ABLATIONS = (*LEGS, *TERMS)


@dataclass(frozen=True, slots=True)
class Ablated:
    """How many evidence items each question got at each budget, without a part."""

    name: str
    found: tuple[tuple[int, ...], ...]


def has_parts(settings: Settings) -> bool:
    """Tell whether the model in force is made of parts that can be left out."""
    return settings.score_model == "v2"


def ablated(
    planner: Planner, questions: Sequence[Labelled], budgets: Sequence[int], said: str, progress: Progress
) -> Iterator[Ablated]:
    """Ask questions without each part in turn, once each: budgets share a pool. Nothing for other models."""
    if not has_parts(planner.engine.settings):
        return
    for name in ABLATIONS:
        with ExitStack() as held:
            asking = Without(planner, name, held)
            found = []
            for number, (question, items) in enumerate(questions, start=1):
                pool = Pool.of(asking.plan(question, max(budgets)), asking.settings)
                share = asking.settings.max_frac_per_source
                plans = [pool.packed(budget, share) for budget in budgets]
                found.append(tuple(metrics.hits(items, selected(plan)) for plan in plans))
                progress(f"{said}, without {name}", number, len(questions))
        yield Ablated(name, tuple(found))


class Without:
    """Plans questions without a part; a file of weights is there for as long as `held` is open."""

    def __init__(self, planner: Planner, name: str, held: ExitStack) -> None:
        engine, embedder = planner.engine, planner.engine.embedder
        self.settings = engine.settings
        if name in TERMS:
            folder = held.enter_context(TemporaryDirectory(prefix="planner-ablation-"))
            path = without_terms(Path(folder), self.settings.score_weights, TERMS[name])
            self.settings = self.settings.model_copy(update={"score_weights": str(path)})
        elif name == "leg: semantic":
            engine = replace(engine, embedder=lambda: Mute(embedder()))
        self._planner = Planner(replace(engine, settings=self.settings))
        self._name = name

    def plan(self, question: Question, budget: int) -> EvidencePlan:
        """Plan a question."""
        if self._name == "leg: lexical":
            (vector,) = self._planner.engine.embedder().embed([question.text])
            return planned(self._planner, question, budget, text=None, embedding=[float(x) for x in vector])
        if self._name == "leg: expansion":
            return planned(self._planner, question, budget, hops=0)
        return planned(self._planner, question, budget)


class Mute:
    """An embedder that has no vector for anything: what it is asked finds nothing by similarity."""

    def __init__(self, of: Embedder) -> None:
        """Take the embedder whose place it takes."""
        self.name, self.revision, self.dimensions = of.name, of.revision, of.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return zero vectors."""
        return np.zeros((len(texts), self.dimensions), dtype=np.float32)


def without_terms(folder: Path, of: str | None, terms: Sequence[str]) -> Path:
    """Write the weights in force with those of some terms 0."""
    packaged = files("planner.recall.v2").joinpath("weights.json")
    weights = json.loads(packaged.read_bytes() if of is None else Path(of).read_bytes())
    weights["weights"] |= dict.fromkeys(terms, 0)
    path = folder / "weights.json"
    path.write_text(json.dumps(weights), encoding="utf-8")
    return path
