"""A store in every state that the viewer shows, and the addresses of its pages; for tests and screenshots."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from planner import InsufficientEvidence, Planner, Settings
from planner.errors import PlannerError
from planner.types import PlanRef
from tests.delivery_strategies import HIDDEN, INSTRUCTION, OPENERS, TAGS
from tests.integration.graph import Graph

SETTINGS = Settings(max_frac_per_source=0.5, k=900, max_nodes=2_000)

SCOPE, EMPTY, HOSTILE, LARGE = "handbook", "new", "hostile", "large"

PAYLOADS = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    '"><svg onload=window.pwned=1>',
    "' autofocus onfocus=window.pwned=1 x='",
    "javascript:window.pwned=1",
    "{{ 7 * 7 }}{% raw %}",
    "</textarea></title></style><script>window.pwned=1</script>",
    "\u202egnp.exe\x1b[31m",
)
"""What would do something in a page that did not escape."""

FORGED = " ".join(
    f"{opener}{hidden}{tag}>end" for opener, hidden, tag in zip(OPENERS, HIDDEN, TAGS, strict=False)
)
"""Delimiters of bundles in the disguises of delivery's own tests."""

EVIL = f"{INSTRUCTION} {' '.join(PAYLOADS)}"
EVIL_ID = "<b>evil</b>/\"'&?#%2f.md"

RETRIES = """# Retries

We retry {times} times, with exponential backoff and jitter.

The first delay is 200 ms; the last may be no longer than 5 s.

## Queues

A message that failed five times goes to the dead letter queue.
"""

DEPLOYS = """# Deploys

Deploys happen on weekdays before 15:00.

A rollback needs one approval and takes four minutes.

Retry a failed deploy once, then call the on-call engineer.
"""

QUESTION = "How often do we retry, and what comes then?"


@dataclass(frozen=True)
class World:
    """The plans of the store, by what became of them."""

    first: PlanRef
    second: PlanRef
    refused: PlanRef
    empty: PlanRef
    failed: PlanRef
    hostile: PlanRef
    large: PlanRef

    def pages(self) -> dict[str, str]:
        """Return a path for every page and state, by a name that a screenshot can have."""
        scope, plan = f"/ui/scopes/{SCOPE}", f"/ui/scopes/{SCOPE}/plans/{self.first.plan_id}"
        second = f"/ui/scopes/{SCOPE}/plans/{self.second.plan_id}"
        return {
            "scopes": "/ui/?all=1",
            "overview": scope,
            "overview-empty": f"/ui/scopes/{EMPTY}",
            "plans": f"{scope}/plans",
            "plans-none-fit": f"{scope}/plans?text=zzz",
            "plans-empty": f"/ui/scopes/{EMPTY}/plans",
            "plan": plan,
            "plan-later": second,
            "plan-refused": f"{scope}/plans/{self.refused.plan_id}",
            "plan-empty": f"{scope}/plans/{self.empty.plan_id}",
            "plan-failed": f"{scope}/plans/{self.failed.plan_id}",
            "plan-large": f"/ui/scopes/{LARGE}/plans/{self.large.plan_id}",
            "pool": f"{second}/pool",
            "pool-large": f"/ui/scopes/{LARGE}/plans/{self.large.plan_id}/pool?from=100",
            "recall": f"{second}/recall",
            "why": f"{second}/why",
            "why-many": f"{second}/why?what=retry",
            "why-one": f"{second}/why?what=dead+letter+queue.",
            "why-unknown": f"{second}/why?what=flux+capacitor",
            "why-erased": f"{plan}/why?what=mail%2Fsecret.txt",
            "bundle": f"{second}/bundle?unit=auto&budget=300",
            "bundle-refused": f"{second}/bundle?budget=5",
            "bundle-of-refused": f"{scope}/plans/{self.refused.plan_id}/bundle",
            "verdict": f"{plan}/verdict?now=1",
            "verdict-failed": f"{scope}/plans/{self.failed.plan_id}/verdict?now=1",
            "compare": f"{scope}/compare?a={self.first.plan_id}&b={self.second.plan_id}",
            "compare-choose": f"{scope}/compare",
            "sources": f"{scope}/sources",
            "sources-empty": f"/ui/scopes/{EMPTY}/sources",
            "source": f"{scope}/source?id=handbook%2Fretries.md&plan={self.second.plan_id}",
            "source-older": f"{scope}/source?id=handbook%2Fretries.md&version=1&plan={self.first.plan_id}",
            "source-use": f"{scope}/source?id=chat%2Fincident-17",
            "source-erased": f"{scope}/source?id=mail%2Fsecret.txt&plan={self.first.plan_id}",
            "source-withdrawn": f"{scope}/source?id=gone.md",
            "source-large": f"/ui/scopes/{LARGE}/source?id=log-0.md&plan={self.large.plan_id}",
            "expectations": f"{scope}/expectations",
            "expectations-empty": f"/ui/scopes/{EMPTY}/expectations",
            "error-no-plan": f"{scope}/plans/00000000-0000-7000-8000-000000000000",
            "error-no-scope": "/ui/scopes/nobody/plans",
            "error-no-page": "/ui/nothing",
        }

    def hostile_pages(self) -> dict[str, str]:
        """Return the pages that show what a stranger wrote."""
        scope, plan = f"/ui/scopes/{HOSTILE}", f"/ui/scopes/{HOSTILE}/plans/{self.hostile.plan_id}"
        evil, source = quote(EVIL, safe=""), quote(EVIL_ID, safe="")
        return {
            "overview": scope,
            "plans": f"{scope}/plans?text={quote(INSTRUCTION)}",
            "plan": plan,
            "pool": f"{plan}/pool",
            "recall": f"{plan}/recall",
            "why": f"{plan}/why?what={evil}",
            "why-source": f"{plan}/why?what={source}",
            "bundle": f"{plan}/bundle?unit=record&budget=5000",
            "bundle-refused": f"{plan}/bundle?counter={evil}",
            "verdict": f"{plan}/verdict?now=1",
            "compare": f"{scope}/compare?a={self.hostile.plan_id}&b={self.hostile.plan_id}",
            "compare-refused": f"{scope}/compare?a={evil}&b={evil}",
            "sources": f"{scope}/sources",
            "source": f"{scope}/source?id={source}&plan={self.hostile.plan_id}",
            "chat": f"{scope}/source?id=chat&plan={self.hostile.plan_id}",
            "source-missing": f"{scope}/source?id={evil}",
            "expectations": f"{scope}/expectations",
            "search": f"{scope}/plans?text={evil}",
        }


def build(planner: Planner) -> World:
    """Fill an empty store."""
    first, second, refused, empty, failed = _handbook(planner)
    planner.ingest_text(EMPTY, "only.md", "There is one text, and nobody has asked yet.")
    return World(first, second, refused, empty, failed, _hostile(planner), _large(planner))


def _handbook(planner: Planner) -> tuple[PlanRef, ...]:
    planner.ingest_text(SCOPE, "handbook/retries.md", RETRIES.format(times="three"), title="Retries")
    planner.ingest_text(SCOPE, "handbook/deploys.md", DEPLOYS)
    planner.ingest_text(
        SCOPE, "mail/secret.txt", "The customer asked that we retry the payment.\n\nCall back on Monday."
    )
    _withdrawn(planner)
    spans = planner.source(SCOPE, "handbook/retries.md").spans
    planner.derive(SCOPE, "In short: retry three times with backoff, then park the message.", [spans[1].ref])
    turns = [
        {"content": "Payments are failing again.", "speaker": "Ana", "time": "2026-05-01T09:30:00Z"},
        {"content": "We retry three times, then give up?", "speaker": "Ben", "time": "2026-05-01T09:31:00Z"},
        {"content": "Yes, and then the dead letter queue.", "speaker": "Ana", "time": "2026-05-01T09:33:00Z"},
    ]
    planner.ingest_conversation(SCOPE, "chat/incident-17", turns, title="Incident 17")
    first = planner.plan(SCOPE, QUESTION, budget_tokens=150).ref
    planner.deliver(first, "window", budget_tokens=300)
    planner.ingest_text(SCOPE, "handbook/retries.md", RETRIES.format(times="five"), title="Retries")
    second = planner.plan(SCOPE, QUESTION, budget_tokens=120).ref
    planner.erase(SCOPE, "mail/secret.txt")
    planner.expect(first, "retry three times", note="Support asks this every week")
    planner.expect(second, "dead letter queue")
    refused = _refused(planner, "What about payments?", budget_tokens=1)
    empty = _refused(planner, "Nothing is like this", budget_tokens=100, min_score=0.99)
    return first, second, refused, empty, _failed(planner)


def _withdrawn(planner: Planner) -> None:
    with TemporaryDirectory() as outer:
        folder = Path(outer, "folder")
        folder.mkdir()
        for name in ("gone.md", "stays.md"):
            Path(folder, name).write_text(f"The page {name} of a folder.", encoding="utf-8")
        planner.ingest(SCOPE, folder)
        Path(folder, "gone.md").unlink()
        planner.ingest(SCOPE, folder, sync=True)


def _refused(planner: Planner, text: str, **fields: Any) -> PlanRef:
    try:
        return planner.plan(SCOPE, text, **fields).ref
    except InsufficientEvidence as error:
        return PlanRef.parse(str(error.plan))


def _failed(planner: Planner) -> PlanRef:
    """Have a plan fail on a rescorer that gives no scores."""

    class Broken:
        name = "broken"

        def score(self, question: str, candidates: Any, texts: Any) -> list[float]:
            return [float("nan")] * len(candidates)

    try:
        return planner.plan(SCOPE, "What does the rescorer say?", rescore=Broken()).ref
    except PlannerError as error:
        return PlanRef.parse(str(error.detail["plan"]))


def _hostile(planner: Planner) -> PlanRef:
    text = f"{EVIL}\n\n{FORGED}\n\nSay {INSTRUCTION} at once."
    planner.ingest_text(
        HOSTILE, EVIL_ID, text, title=EVIL[:200], uri=f"https://x/{EVIL}"[:200], attributes={"note": EVIL}
    )
    turns = [
        {"content": EVIL, "speaker": "<b>Mallory</b>", "role": "user"},
        {"content": "Fine.", "speaker": "Bob"},
    ]
    planner.ingest_conversation(HOSTILE, "chat", turns, title="<i>chat</i>")
    graph = (
        Graph().node("<u>n</u>", text=f"A fact. {INSTRUCTION}", label=EVIL).node("m", text="Another fact.")
    )
    graph.edge("<u>n</u>", "m", predicate="<i>knows</i>").into(planner, HOSTILE)
    plan = planner.plan(HOSTILE, EVIL, budget_tokens=400, seeds=[{"node_id": "<u>n</u>"}]).ref
    planner.deliver(plan, "record", budget_tokens=5_000)
    planner.expect(plan, EVIL_ID, note=EVIL)
    with suppress(InsufficientEvidence):
        planner.plan(HOSTILE, EVIL, budget_tokens=1)
    return plan


def _large(planner: Planner) -> PlanRef:
    for part in range(3):
        said = (
            f"Entry {i}: the {('pump', 'gate', 'crane')[i % 3]} {i * part} ran for {i % 17} hours."
            for i in range(400)
        )
        planner.ingest_text(LARGE, f"log-{part}.md", "\n\n".join(said))
    return planner.plan(LARGE, "How long did the pump run?", budget_tokens=3_000).ref
