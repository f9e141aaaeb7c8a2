"""A tenant's day in which every statement of a tenant is sent, and what was sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool

from planner import EvidencePlan, InsufficientEvidence, Planner, Settings
from planner.embedders import CallableEmbedder
from planner.errors import ConflictingInput
from planner.ingest import scope_id
from planner.store.arrays import BINARY_ARRAYS
from planner.store.connect import run
from tests.integration.graph import MODEL, V1, Graph, ask, circle_embedder

DOCUMENT = (
    "# Harbour\n\nThe gate of the Talk closes at 10.\n\nSee [the log](log.md) at 40.\n\nThe end at 80.\n"
)


@dataclass
class Sent:
    """The statements of one tenant, in order, each with its parameters."""

    statements: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def recorded(url: str) -> Iterator[tuple[Planner, Sent]]:
    """Open a planner whose statements with parameters are kept."""
    sent = Sent()

    def keep(cursor: psycopg.Cursor[Any], query: Any, params: Any) -> None:
        if isinstance(params, dict) and "scope_id" in params:
            sent.statements.append((query.as_string(cursor), params))

    class Recorder(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            keep(self, query, params)
            return super().execute(query, params, **options)

        def stream(self, query: Any, params: Any = None, **options: Any) -> Any:
            keep(self, query, params)
            return super().stream(query, params, **options)

    settings = Settings(**V1, max_frac_per_source=1.0)
    with ConnectionPool(url, min_size=1, kwargs={"cursor_factory": Recorder}, open=True) as pool:
        yield Planner.from_pool(pool, settings=settings, embedder=circle_embedder()), sent


def lived(planner: Planner, scope: str) -> list[EvidencePlan]:
    """Live through it; return the plans that were made."""
    _write(planner, scope)
    plans = _ask(planner, scope)
    _ask_by_words(planner, scope)
    _look(planner, scope, plans)
    _move(planner, scope)
    _index(planner, scope)
    return plans


def _write(planner: Planner, scope: str) -> None:
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    titled = {"title": "Second book"}
    graph = Graph().node("a", 5, text="First.").node("b", 15, text="Second Harbour.", source=titled)
    graph.node("far", 170, text="Far off.")
    graph.node("aside", 90, text="Aside.").edge("a", "b").edge("b", "far", 0.5).edge("a", "aside", 0.1)
    graph.into(planner, scope)
    again = Graph().node("b", 25, text="Second Harbour, again.", source=titled)
    again.edge("b", "a", 0.9).into(planner, scope)
    planner.ingest_text(scope, "doc.md", DOCUMENT.replace("closes at 10", "opens at 20"))
    planner.ingest_text(scope, "doc.md", DOCUMENT)
    with suppress(ConflictingInput):
        Graph().edge("a", "nobody").into(planner, scope)
    _change(planner, scope)


def _change(planner: Planner, scope: str) -> None:
    """Converse, withdraw, erase and derive."""
    turns = [
        {"speaker": "Ada", "content": "Hello, Harbour, at 100.", "id": "m1"},
        {"speaker": "Mira", "content": "Goodbye, Harbour, at 110.", "id": "m2"},
    ]
    for turn in turns:
        planner.append(scope, "talk.json", [turn])
    planner.append(scope, "talk.json", turns)
    planner.append(scope, "talk.json", [{"content": "Once, at 130."}], idempotency_key="once")
    planner.append(scope, "talk.json", [{"content": "Once, at 130."}], idempotency_key="once")
    planner.ingest_conversation(scope, "talk.json", turns)
    for said in (turns[:1], turns):
        planner.ingest_conversation(scope, "again.json", said)
    with TemporaryDirectory() as outer:
        folder = Path(outer, "folder")
        folder.mkdir()
        for name in ("stays.md", "goes.md"):
            Path(folder, name).write_text(f"The file {name} of the Harbour, at 120", encoding="utf-8")
        planner.ingest(scope, folder)
        Path(folder, "goes.md").unlink()
        planner.ingest(scope, folder, sync=True)
        planner.erase(scope, "stays.md")
        planner.ingest(scope, folder)
    planner.versions(scope, "talk.json")
    planner.derive(scope, "In short, the Harbour, at 160.", [planner.source(scope, "doc.md").spans[1].ref])


def _ask(planner: Planner, scope: str) -> list[EvidencePlan]:
    kind = {"field": "kind", "op": "in", "value": ["fact", "paragraph", "heading"]}
    trust = {"field": "trust", "op": "gte", "value": "external"}
    window = {"from": "2020-01-01T00:00:00Z"}
    plans = [
        ask(planner, scope, text="at 0", parts=["at 90"], counter="openai:o200k_base"),
        ask(planner, scope, text="at 0", match=kind, must=trust, window=window, seeds=[{"node_id": "a"}]),
        ask(planner, scope, text="at 0", as_of=2, direction="in", budget_tokens=20),
        ask(planner, scope, text="at 0", k=1, hops=1, fanout=1, roots=1),
    ]
    with suppress(InsufficientEvidence):
        planner.plan(scope, "at 0", budget_tokens=1)
    return plans


def _ask_by_words(planner: Planner, scope: str) -> list[EvidencePlan]:
    settings = planner.engine.settings.model_copy(update={"score_model": "v2"})
    by_words = Planner(replace(planner.engine, settings=settings))
    window = {"from": "2020-01-01T00:00:00Z"}
    plans = [
        ask(by_words, scope, text="The gate of the Second Harbour at 0"),
        ask(by_words, scope, text="The gate of the Second Harbour at 0", as_of=2, window=window),
        ask(
            by_words,
            scope,
            match={"field": "kind", "op": "eq", "value": "message"},
            structured_limit=1,
            hops=0,
        ),
    ]
    planner.replan(plans[0].ref)
    return plans


def _look(planner: Planner, scope: str, plans: list[EvidencePlan]) -> None:
    narrow = plans[-1]
    for what in ("far.txt@2:0-8", "far", "doc.md", "The end at 80", "nothing of the sort", "aside"):
        planner.why(narrow.ref, what)
    planner.load(narrow.ref)
    planner.plans(scope, text="AT 0", limit=1)
    planner.replay(narrow.ref)
    planner.replan(narrow.ref)
    planner.diff(narrow.ref, plans[0].ref)
    planner.verify_plan(narrow.ref)
    planner.verify_citation(narrow.ref, "First", "E1")
    planner.deliver(plans[0].ref, "window", budget_tokens=100_000)
    planner.context(scope, "at 0", "record", budget_tokens=1_000)
    planner.deliveries(plans[0].ref)
    planner.verify_ledger(scope)
    planner.whatif({"budget": 20}, scopes=[scope])
    planner.expect(narrow.ref, "doc.md")
    planner.remove_expectation(planner.expect(narrow.ref, "far").ref)
    planner.expectations(scope)
    planner.slice_text(scope, "b.txt@2:0-15")
    planner.span_row(scope, "b.txt@2:0-15")
    planner.sources(scope)
    planner.source(scope, "doc.md")
    planner.source(scope, "talk.json")
    planner.source_text(scope, "talk.json", limit=1)
    planner.source_use(scope, "doc.md")
    planner.texts(scope, [planner.source(scope, "doc.md").spans[0].ref])
    planner.volumes(scope, [("doc.md", 1)])
    planner.recalled(plans[0].ref)
    planner.read_source(scope, "talk.json", start=f"{planner.source(scope, 'talk.json').version_tx}:0")
    planner.evidence_ref(narrow.ref, "E1")
    planner.overview(scope)
    _let_in(planner, scope)


def _let_in(planner: Planner, scope: str) -> None:
    for label in ("one", "two"):
        made = planner.create_token(scope, label=label, permissions=["read"])
        planner.authenticate(made.text)
    planner.revoke_token(scope, made.token.token_id)
    planner.tokens(scope)


def _index(planner: Planner, scope: str) -> None:
    """Have no lexical index, then have it built."""
    identity = scope_id(scope)
    with planner.engine.store.scoped(identity, "writer") as conn:
        run(conn, "mark_lexical", {"scope_id": identity, "lexical": None})
    planner.build_lexical_index(scope)


def _move(planner: Planner, scope: str) -> None:
    """Move to another model, which sees no direction in one of the texts."""

    def sees(texts: list[str]) -> list[list[float]]:
        return [[0.0, 0.0] if text == "Aside." else [1.0, 1.0] for text in texts]

    later = CallableEmbedder(MODEL, 2, sees, revision="later")
    planner.reembed(scope, later, batch=3, progress=lambda done, total: None)


def attempt(conn: psycopg.Connection[Any], statement: str, params: dict[str, Any]) -> list[Any] | str:
    """Run a statement and take it back; return its rows, else how many it wrote, or its error."""
    for kind, dumper in BINARY_ARRAYS.items():
        conn.adapters.register_dumper(kind, dumper)
    try:
        with conn.transaction(force_rollback=True):
            cursor = conn.execute(statement.encode(), params, prepare=False)
            return sorted(cursor.fetchall(), key=repr) if cursor.description else [("wrote", cursor.rowcount)]
    except psycopg.Error as error:
        return str(error.sqlstate)
