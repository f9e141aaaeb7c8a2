"""Corpora, from their files to what came of every question, through the same door as everybody's.

A scratch database, every source ingested, every question planned at every budget, every plan delivered by
each unit that is asked for. Nothing is random: two runs differ in their timings alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from planner.client import Planner
from planner.evaluation.ablation import Ablated, ablated
from planner.evaluation.asking import Asked, Asking, Labelled
from planner.evaluation.corpora import Corpus
from planner.evaluation.loading import Labels, Progress, load
from planner.settings import Settings
from planner.store.scratch import scratch_database
from planner.types import Unit


def silent(stage: str, done: int, total: int) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class Run:
    """All questions of a corpus under one configuration; `timings` are milliseconds by stage, one a plan.

    `together` names the corpora that shared the scope, where several did; `ablated` is what the questions got
    without a part of the model.
    """

    corpus: str
    embedder: str
    settings: Settings
    units: tuple[Unit, ...]
    asked: tuple[Asked, ...]
    timings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    together: tuple[str, ...] = ()
    ablated: tuple[Ablated, ...] = ()


def evaluate(corpus: Corpus, url: str, variants: Sequence[Settings], **how: Any) -> tuple[Run, ...]:
    """Ingest a corpus into a scratch database on the server of `url`, and ask it under each variant.

    `how` are the arguments of `evaluate_together`, which says what is raised.
    """
    (runs,) = evaluate_together((corpus,), url, variants, **how)
    return runs


def evaluate_together(
    corpora: Sequence[Corpus],
    url: str,
    variants: Sequence[Settings],
    *,
    budgets: Sequence[int],
    units: Sequence[Unit] = (),
    limit: int | None = None,
    ablate: bool = False,
    progress: Progress = silent,
    **parts: Any,
) -> list[tuple[Run, ...]]:
    """Do the same for corpora that share one database, and one scope where they say so; runs by corpus.

    `budgets` are what plans may fill and what bundles may count, in tokens of `utf8-script-v1`; `units` are
    those to deliver by; `limit` is how many questions of each corpus to ask; `ablate` asks them without each
    part of the model too, where it has parts; `parts` are those of `Planner.connect`. No plan is kept, and no
    operator's maximum narrows a budget. Raises MalformedInput, IngestError, EmbedderError, StoreError.
    """
    together = tuple(corpus.name for corpus in corpora) if len(corpora) > 1 else ()
    out = []
    with filled(corpora, url, variants[0], progress, **parts) as planner:
        name = planner.engine.embedder().name
        for corpus in corpora:
            questions, runs = labelled(planner, corpus, limit), []
            for settings in variants:
                asking = Asking(unbound(planner, settings), budgets, units)
                said = f"{corpus.name}: {described(settings)}"
                asked = []
                for number, (question, items) in enumerate(questions, start=1):
                    asked.append(asking.ask(question, items))
                    progress(said, number, len(questions))
                without = ablated(asking.planner, questions, budgets, said, progress) if ablate else ()
                of = (corpus.name, name, settings, tuple(units), tuple(asked), asking.timings)
                runs.append(Run(*of, together, tuple(without)))
            out.append(tuple(runs))
    return out


@contextmanager
def filled(
    corpora: Sequence[Corpus], url: str, settings: Settings, progress: Progress, **parts: Any
) -> Iterator[Planner]:
    """Give a planner on a scratch database that holds every source of these corpora."""
    with scratch_database(url) as scratch, Planner.connect(scratch, settings=settings, **parts) as planner:
        for corpus in corpora:
            load(planner, corpus, progress)
        yield planner


def labelled(planner: Planner, corpus: Corpus, limit: int | None) -> list[Labelled]:
    """Return the first `limit` questions of a corpus that was ingested, with where their evidence is."""
    labels = Labels(planner, corpus)
    return [(question, labels.items(question)) for question in corpus.questions[:limit]]


def unbound(planner: Planner, settings: Settings) -> Planner:
    """Return the planner under other settings, without their maximum of a budget, keeping no plan."""
    free = settings.model_copy(update={"trace": "off", "max_budget": None})
    return Planner(replace(planner.engine, settings=free))


def described(settings: Settings) -> str:
    """Say in a few words what a run is under."""
    cap = f"at most {settings.max_frac_per_source:g} from one source"
    return f"score_model {settings.score_model}, plan_model {settings.plan_model}, {cap}"
