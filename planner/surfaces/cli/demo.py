"""`planner demo`: from nothing to three explained plans, on the embedded server."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from planner.client import Planner
from planner.demo import DemoQuestion, corpus_folder, questions
from planner.surfaces.cli import evidence
from planner.surfaces.cli import ingest as ingest_command
from planner.surfaces.cli import why as why_command
from planner.surfaces.cli.options import AsJson, ConfigFile, DataDir, load_settings
from planner.surfaces.cli.output import console, emit_json, visible
from planner.surfaces.cli.server import embedded
from planner.trace.why import Why
from planner.types import EvidencePlan, IngestReport

SCOPE = "demo"
ASKED = 3
SHOWN = 8


def demo(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Ingest a small corpus into the embedded server, ask three questions, explain the answers.

    Everything stays in the scope `demo`, for commands of your own; a second run writes nothing twice.

    Example: planner demo
    """
    settings = load_settings(config, data_dir=data_dir).settings.model_copy(update={"database_url": None})
    with Planner.embedded(settings=settings, actor="demo") as planner:
        report = planner.ingest(SCOPE, corpus_folder(), trust="internal")
        asked = [_ask(planner, question) for question in questions()[:ASKED]]
    places = {
        "corpus": str(corpus_folder()),
        "data": str(embedded(settings).status().data_dir),
    }
    if as_json:
        emit_json(_to_dict(report, asked, places))
    else:
        _show(report, asked, places)


def _ask(planner: Planner, question: DemoQuestion) -> tuple[EvidencePlan, Why]:
    """Plan a question, and ask about what came closest to being selected, else about what came first."""
    made = planner.plan(
        SCOPE, question.text, budget_tokens=question.budget_tokens, min_score=question.min_score
    )
    span = (*made.rejected, *made.spans)[0]
    return made, planner.why(made.ref, str(span.verdict.candidate.ref))


def _to_dict(
    report: IngestReport, asked: list[tuple[EvidencePlan, Why]], places: dict[str, str]
) -> dict[str, Any]:
    return {
        **places,
        "ingested": report.to_dict(),
        "questions": [{"plan": made.to_dict(), "why": why.to_dict()} for made, why in asked],
    }


def _show(report: IngestReport, asked: list[tuple[EvidencePlan, Why]], places: dict[str, str]) -> None:
    ingest_command.show(report)
    for made, why in asked:
        console.rule(style="")
        evidence.show_header(made)
        evidence.show_budget(made)
        evidence.show_evidence(made, SHOWN)
        evidence.show_counts(made)
        evidence.show_timings(made)
        console.print(f"why {visible(why.what)}?", soft_wrap=True)
        why_command.show(why)
    console.rule(style="")
    console.print(f"The corpus is in {visible(places['corpus'])}.", soft_wrap=True)
    console.print(f"The database is in {visible(places['data'])}.", soft_wrap=True)
    console.print("Next:")
    for line in _next(asked[-1][0]):
        console.print(f"  {line}", soft_wrap=True)


def _next(last: EvidencePlan) -> list[str]:
    """Return commands to try, which need `planner` on the path."""
    on_path = [] if shutil.which("planner") else [f". {visible(sys.prefix)}/bin/activate"]
    return [
        *on_path,
        f"planner show {last.ref}",
        f"planner replay {last.ref}",
        f"planner plan {SCOPE} 'What does a guest berth cost for a night?' --budget 400 --min-score 0.1",
        f"planner source list {SCOPE}",
        "planner db psql -- -c 'select plan, question, used, budget from planner.plan_overview'",
        "planner ingest notes PATH… && planner plan notes 'a question of your own'",
    ]
