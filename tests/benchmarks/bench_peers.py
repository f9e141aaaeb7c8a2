"""Evidence and latency beside LlamaIndex and LangChain: the same chunks, vectors, questions and server.

Every contender is asked every question, in turns. What the others find is packed in rank order until the
first text that does not fit, as their users do; ours is the plan, its trace written. Printed are percent of
evidence / of questions with all of it, as `planner eval` counts them, and the milliseconds of an answer at
the largest budget, with their ratio to LlamaIndex's. By hand, in an environment of its own:

    pip install -c tests/benchmarks/constraints-peers.txt -e '.[embedded,peers]'
    python -m tests.benchmarks.bench_peers CORPUS_DIR… [--limit N] [--titles] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import import_module
from importlib.metadata import version
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from planner import Planner, Settings
from planner.embedded import EmbeddedServer
from planner.embedders import embedder as embedder_named
from planner.errors import PlannerError, RequestError
from planner.evaluation import metrics
from planner.evaluation.corpora import Corpus, Question, read_corpus
from planner.evaluation.loading import Labels, load
from planner.evaluation.metrics import Item
from planner.selection.budget import request_for
from planner.store.scratch import scratch_database
from planner.types import SpanRef
from tests.benchmarks.chunks import Hit, chunks_of, packed, remembered

BUDGETS = (512, 1_024, 2_048, 4_096, 6_000)
K = 200
"""How many hits the others are asked for: more than fill the largest budget."""

PACKAGES = ("llama-index-vector-stores-postgres", "langchain-postgres")
BASE = "LlamaIndex"

Answer = Callable[[str, str, int], Sequence[SpanRef]]
"""From a scope, a question and a budget to the spans that are shown."""

Asked = tuple[Question, Sequence[Item]]


@dataclass
class Tally:
    """What a contender found of each question's evidence, by budget, and how many ms each question took."""

    recalls: dict[int, list[float]] = field(default_factory=lambda: {budget: [] for budget in BUDGETS})
    took: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Return shares from 0 to 1 by budget, and percentiles."""
        budgets = {
            str(budget): {
                "evidence_recall": metrics.mean(recalls),
                "all_evidence": metrics.mean(recall == 1 for recall in recalls),
            }
            for budget, recalls in self.recalls.items()
        }
        return {"budgets": budgets, "latency_ms": metrics.percentiles(self.took)}


def measure(url: str, corpus: Corpus, limit: int | None, *, titles: bool) -> dict[str, Any]:
    """Load a corpus into a database a product, and return the figures of every contender."""
    searches = _peers().searches
    embedder = remembered(embedder_named("wordllama"))
    with (
        scratch_database(url) as ours,
        Planner.connect(ours, settings=Settings(), embedder=embedder) as planner,
    ):
        load(planner, corpus, lambda stage, done, total: None)
        asked = _asked(planner, corpus, limit)
        embedder.embed([question.text for question, _ in asked])
        chunks = chunks_of(planner, corpus, embedder, titles=titles)
        fresh = partial(_fresh, url, corpus.name)
        with searches(fresh, chunks, embedder, K) as theirs:
            answers = {**_plans(planner), **{name: _packing(search) for name, search in theirs.items()}}
            _settle(url)
            tallies = contest(answers, asked)
    return {
        "corpus": corpus.name,
        "chunks": sum(map(len, chunks.values())),
        "questions": len(asked),
        "titles": titles,
        "k": K,
        "versions": {package: version(package) for package in PACKAGES},
        "contenders": {name: tally.figures() for name, tally in tallies.items()},
    }


def contest(answers: Mapping[str, Answer], asked: Sequence[Asked]) -> dict[str, Tally]:
    """Ask everybody everything, the largest budget first, which is timed; who begins changes by question.

    Before it everybody is asked for the name of each scope, so that connections are open.
    """
    for scope, answer in product({question.scope for question, _ in asked}, answers.values()):
        answer(scope, scope, BUDGETS[-1])
    tallies = {name: Tally() for name in answers}
    for turn, (question, items) in enumerate(asked):
        for name in _rotated(list(answers), turn):
            tally = tallies[name]
            for budget in reversed(BUDGETS):
                started = perf_counter()
                shown = answers[name](question.scope, question.text, budget)
                if budget == BUDGETS[-1]:
                    tally.took.append(1_000 * (perf_counter() - started))
                tally.recalls[budget].append(metrics.hits(items, shown) / len(items))
    return tallies


def table(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a report."""
    contenders = report["contenders"]
    base = contenders[BASE]["latency_ms"]["p50"]
    titled = ", titles above the others' chunks" if report["titles"] else ""
    yield f"{report['corpus']}: {report['questions']} questions, {report['chunks']:,} chunks{titled}"
    yield f"{'':<20}{''.join(f'{budget:>10,}' for budget in BUDGETS)}{'p50 ms':>9}{'p95 ms':>9}{'ratio':>7}"
    for name, figures in contenders.items():
        cells = (
            f"{100 * at['evidence_recall']:.0f}/{100 * at['all_evidence']:.0f}"
            for at in figures["budgets"].values()
        )
        took = figures["latency_ms"]
        speed = f"{took['p50']:>9.1f}{took['p95']:>9.1f}{took['p50'] / base:>7.1f}"
        yield f"{name:<20}{''.join(f'{cell:>10}' for cell in cells)}{speed}"


def _peers() -> Any:
    """Return the module that needs the extra. Raises RequestError where that is missing."""
    try:
        return import_module("tests.benchmarks.peers")
    except ModuleNotFoundError as error:
        raise RequestError(
            f"{error.name} is missing: this needs pip install '.[peers]'; an environment of its own is best, "
            "with -c tests/benchmarks/constraints-peers.txt"
        ) from None


def _asked(planner: Planner, corpus: Corpus, limit: int | None) -> list[Asked]:
    """Return questions that have evidence, `limit` of them from all over the file, with that evidence."""
    labels = Labels(planner, corpus)
    labelled = [question for question in corpus.questions if question.evidence]
    count = min(limit or len(labelled), len(labelled))
    spread = [labelled[i * len(labelled) // count] for i in range(count)]
    return [(question, labels.items(question)) for question in spread]


def _plans(planner: Planner) -> dict[str, Answer]:
    """Return the planner under both models without the cap of one source, and as it comes."""
    settings = planner.engine.settings
    variants = {"planner, default": settings}
    for model in ("v1", "v2"):
        values = {"score_model": model, "plan_model": model, "max_frac_per_source": 1.0}
        variants[f"planner {model}, no cap"] = settings.model_copy(update=values)
    return {
        name: _planning(Planner(replace(planner.engine, settings=variant)))
        for name, variant in variants.items()
    }


def _planning(planner: Planner) -> Answer:
    def answer(scope: str, question: str, budget: int) -> list[SpanRef]:
        requested = request_for(budget, "estimate")
        plan = planner.plan(scope, question, budget_tokens=requested, allow_ungrounded=True)
        return [span.verdict.candidate.ref for span in plan.spans]

    return answer


def _packing(search: Callable[[str, str], Iterator[Hit]]) -> Answer:
    """Search once a question, whatever the budgets."""

    @lru_cache(maxsize=1)
    def found(scope: str, question: str) -> Sequence[Hit]:
        return tuple(search(scope, question))

    return lambda scope, question, budget: packed(found(scope, question), budget)


def _rotated(names: list[str], turn: int) -> list[str]:
    first = turn % len(names)
    return names[first:] + names[:first]


def _fresh(url: str, corpus: str, peer: str) -> str:
    """Make an empty database and return how to connect to it."""
    name = f"{peer} {corpus}"
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return make_conninfo(url, dbname=name)


def _settle(url: str) -> None:
    """Do in every database what autovacuum would have done in a minute."""
    with psycopg.connect(url, autocommit=True) as conn:
        names = conn.execute(
            "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate"
        ).fetchall()
    for (name,) in names:
        with psycopg.connect(make_conninfo(url, dbname=name), autocommit=True) as conn:
            conn.execute("VACUUM (ANALYZE)")


def main() -> None:
    """Measure the corpora of the command line on an embedded server of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path, nargs="+", metavar="CORPUS_DIR")
    parser.add_argument("--limit", type=int, help="questions a corpus, from all over its file")
    parser.add_argument(
        "--titles", action="store_true", help="the title of a source above each chunk of theirs"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    reports = []
    try:
        _peers()
        corpora = [read_corpus(folder) for folder in given.corpora]
        with TemporaryDirectory() as folder, EmbeddedServer(Path(folder), durable=False) as server:
            for corpus in corpora:
                reports.append(measure(server.url, corpus, given.limit, titles=given.titles))
                print("\n".join(table(reports[-1])), flush=True)  # noqa: T201
            server.stop()
    except PlannerError as error:
        sys.exit(f"{error.code}: {error}")
    if given.json:
        given.json.write_text(json.dumps(reports, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
