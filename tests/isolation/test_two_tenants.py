"""Two tenants of one content: on every statement neither sees nor touches the other, by either fence alone.

The first fence is the scope_id predicate of each statement, tried with row security bypassed; the second is
row security, tried with the other tenant's parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from planner import EvidencePlan, Planner, Settings
from planner.errors import PlannerError
from planner.ingest import scope_id
from planner.store.connect import Store
from planner.store.queries import queries
from planner.store.schema import metadata
from tests.integration.graph import V1, Graph, ask, circle_embedder, nodes_of
from tests.isolation.scenario import attempt, lived, recorded

A, B, C = "tenant-a", "tenant-b", "tenant-c"
TENANT_TABLES = sorted(t.name for t in metadata.tables.values() if "scope_id" in t.columns)

NOT_A_TENANTS = {
    "handshake": "the catalogue",
    "schema_revision": "the catalogue",
    "register_model": "the shared table of models",
    "find_model": "the shared table of models",
    "stale_tables": "the catalogue, as the owner",
    "analyze": "statistics, as the owner",
    "vector_index_state": "the catalogue, as the owner",
    "create_vector_index": "an index, as the owner",
    "drop_vector_index": "an index, as the owner",
    "sample_no_vectors": "an index, as the owner",
    "scope_indexes": "the catalogue, as the owner",
    "scrub": "whole tables, as the owner",
    "prune_node_spans": "one source's old versions, as the owner",
    "prune_nodes": "one source's old versions, as the owner",
    "prune_embeddings": "one source's old versions, as the owner",
    "prune_edges": "one source's old versions, as the owner",
    "prune_derivations": "one source's old versions, as the owner",
    "prune_spans": "one source's old versions, as the owner",
    "prune_versions": "one source's old versions, as the owner",
    "prune_lexical": "one source's old versions, as the owner",
    "prune_titles": "one source's old versions, as the owner",
    "lock_scope": "a scope that is deleted, as the owner",
    "vacuum_versions": "a whole table, as the owner",
    "empty_scope": "a scope that is deleted, as the owner",
    "delete_scope": "a scope that is deleted, as the owner",
    "list_scopes": "all scopes, as the owner",
    "prunable": "one scope after the other, as the owner",
    "prune_plans": "one scope after the other, as the owner",
    "prune_deliveries": "one scope after the other, as the owner",
    "server_facts": "the catalogue",
    "role_facts": "the catalogue",
    "schema_facts": "the catalogue",
    "create_scratch": "a database of its own, as the login",
    "relax_scratch": "a database of its own, as the login",
    "drop_scratch": "a database of its own, as the login",
    "take_lock": "a lock",
    "release_lock": "a lock",
    "unfenced_tables": "the catalogue",
    "vector_indexes": "the catalogue",
    "any_scope": "all scopes, as the owner: the doctor's",
    "foreign_rows": "what is of other scopes: the doctor's",
    "foreign_tokens": "what is of other scopes: the doctor's",
    "dangling_edges": "all scopes, as the owner: the doctor's",
    "ledger_gaps": "all scopes, as the owner: the doctor's",
    "miscounted_scopes": "all scopes, as the owner: the doctor's",
    "index_faults": "all scopes, as the owner: the doctor's",
    "unused_vector_indexes": "all scopes, as the owner: the doctor's",
}
TENANTS = {name: text for name, text in queries().items() if name not in NOT_A_TENANTS}


@dataclass(frozen=True)
class Pair:
    """One statement as both tenants sent it."""

    statement: str
    of_a: dict[str, Any]
    of_b: dict[str, Any]

    @property
    def writes(self) -> bool:
        return re.search(r"\b(INSERT INTO|UPDATE|DELETE FROM) planner\.", self.statement) is not None


@dataclass(frozen=True)
class Tenants:
    """Both tenants after the same day, what they sent and what they were told."""

    url: str
    app_url: str
    pairs: tuple[Pair, ...]
    plans: dict[str, list[EvidencePlan]]


@pytest.fixture(scope="module")
def tenants(module_database_url: str, module_app_login_url: str) -> Tenants:
    sent, plans = {}, {}
    for scope in (A, B):
        with recorded(module_app_login_url) as (planner, kept):
            plans[scope] = lived(planner, scope)
        sent[scope] = kept.statements
    assert [statement for statement, _ in sent[A]] == [statement for statement, _ in sent[B]]
    pairs = [Pair(s, of_a, of_b) for (s, of_a), (_, of_b) in zip(sent[A], sent[B], strict=True)]
    assert all(
        pair.of_a["scope_id"] == scope_id(A) and pair.of_b["scope_id"] == scope_id(B) for pair in pairs
    )
    return Tenants(module_database_url, module_app_login_url, tuple(pairs), plans)


@pytest.fixture
def bypassing(tenants: Tenants) -> Iterator[psycopg.Connection[Any]]:
    """Give a superuser's connection without a role: no row security. What it does is taken back."""
    with psycopg.connect(tenants.url) as conn:
        conn.execute("SET LOCAL search_path = planner, public")
        conn.execute("SET LOCAL session_replication_role = replica")  # so that a tenant can be taken away
        yield conn
        conn.rollback()


def digest(conn: psycopg.Connection[Any], scope: UUID) -> dict[str, str]:
    """Return a digest of all that each table holds of a scope."""
    found = {}
    for table in TENANT_TABLES:
        rows = "SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM planner.{} t WHERE scope_id = %s"
        (found[table],) = conn.execute(sql.SQL(rows).format(sql.Identifier(table)), (scope,)).fetchone() or (
            "",
        )
    return found


def forget(conn: psycopg.Connection[Any], scope: UUID) -> None:
    for table in TENANT_TABLES:
        conn.execute(
            sql.SQL("DELETE FROM planner.{} WHERE scope_id = %s").format(sql.Identifier(table)), (scope,)
        )


def normal(text: str) -> str:
    return " ".join(text.split())


def test_every_statement_of_a_tenant_was_sent(tenants: Tenants) -> None:
    sent = [normal(pair.statement) for pair in tenants.pairs]
    missing = set()
    for name, text in TENANTS.items():
        parts = [re.escape(normal(part)).replace(r"\{\{\}\}", r"\{\}") for part in re.split(r"\{\w+\}", text)]
        pattern = re.compile(".*?".join(parts), re.DOTALL)
        if not any(pattern.search(statement) for statement in sent):
            missing.add(name)
    assert missing == set()
    assert NOT_A_TENANTS.keys() <= queries().keys()


def test_the_predicate_alone_keeps_reads_apart(tenants: Tenants, bypassing: psycopg.Connection[Any]) -> None:
    reads = [pair for pair in tenants.pairs if not pair.writes]
    beside = [attempt(bypassing, pair.statement, pair.of_a) for pair in reads]
    forget(bypassing, scope_id(B))
    alone = [attempt(bypassing, pair.statement, pair.of_a) for pair in reads]
    assert [p.statement for p, b, a in zip(reads, beside, alone, strict=True) if b != a] == []
    assert [rows for rows in beside if isinstance(rows, str)] == []  # each did run
    forget(bypassing, scope_id(A))
    gone = [attempt(bypassing, pair.statement, pair.of_a) for pair in reads]
    told = {normal(p.statement) for p, b, g in zip(reads, beside, gone, strict=True) if b != g}
    assert len(told) > 0.9 * len({normal(pair.statement) for pair in reads})  # each had something to tell


def test_the_predicate_alone_keeps_writes_apart(tenants: Tenants) -> None:
    """With row security off, a third tenant's day leaves the others as they were, and is the same day."""
    with psycopg.connect(tenants.url, autocommit=True) as conn:
        _row_security(conn, "DISABLE")
        try:
            before = digest(conn, scope_id(B))
            with recorded(tenants.app_url) as (planner, _):
                plans = lived(planner, C)
            assert digest(conn, scope_id(B)) == before
            assert len({value for value in before.values() if value}) > 12
        finally:
            _row_security(conn, "ENABLE")
            conn.execute("SET session_replication_role = replica")
            forget(conn, scope_id(C))
    for plan, theirs in zip(plans, tenants.plans[B], strict=True):
        assert (plan.plan_hash, plan.pool_hash) == (theirs.plan_hash, theirs.pool_hash)


def _row_security(conn: psycopg.Connection[Any], state: str) -> None:
    for table in TENANT_TABLES:
        alter = sql.SQL("ALTER TABLE planner.{} {} ROW LEVEL SECURITY")
        conn.execute(alter.format(sql.Identifier(table), sql.SQL(state)))


@pytest.mark.parametrize("login", ["app", "superuser"])
def test_row_security_alone_keeps_the_other_tenant_out(tenants: Tenants, login: str) -> None:
    """Inside A's transaction, with B's parameters: the answer of a scope that does not exist."""
    nobody, pairs = uuid4(), tenants.pairs
    with closing(Store.open(tenants.app_url if login == "app" else tenants.url)) as store:
        with psycopg.connect(tenants.url) as conn:
            before = digest(conn, scope_id(B))
        with store.scoped(scope_id(A), "writer") as conn:
            theirs = [attempt(conn, pair.statement, pair.of_b) for pair in pairs]
            nobodys = [attempt(conn, pair.statement, {**pair.of_b, "scope_id": nobody}) for pair in pairs]
            own = [attempt(conn, pair.statement, pair.of_a) for pair in pairs]
        assert [p.statement for p, t, n in zip(pairs, theirs, nobodys, strict=True) if t != n] == []
        answers = list(zip(pairs, own, theirs, strict=True))
        nothing = ("42501", [("wrote", 0)], [])  # refused, no row, no row returned
        assert [p.statement for p, _, t in answers if p.writes and t not in nothing] == []
        assert len({normal(p.statement) for p, _, t in answers if t == "42501"}) >= 10  # row security said no
        reads = [(normal(p.statement), mine != other) for p, mine, other in answers if not p.writes]
        told = {statement for statement, differs in reads if differs}
        assert len(told) > 0.9 * len({statement for statement, _ in reads})  # each told its owner something
        with psycopg.connect(tenants.url) as conn:
            assert digest(conn, scope_id(B)) == before


@pytest.mark.parametrize("login", ["app", "superuser"])
def test_both_tenants_get_the_same_answers_under_any_login(tenants: Tenants, login: str) -> None:
    with Planner.connect(
        tenants.app_url if login == "app" else tenants.url,
        settings=Settings(**V1, max_frac_per_source=1.0),
        embedder=circle_embedder(),
    ) as planner:
        for mine, theirs in zip(tenants.plans[A], tenants.plans[B], strict=True):
            asked = {name: value for name, value in mine.request.items() if value is not None}
            again = planner.plan({**asked, "scope": B})
            assert again.pool_hash == mine.pool_hash == theirs.pool_hash
            assert planner.load(mine.ref).plan_hash == mine.plan_hash


def unfenced(text: str) -> list[str]:
    """Return the references to tenant tables in a statement that carry no scope predicate of their own."""
    found = []
    references = re.findall(r"\b(FROM|JOIN|UPDATE)\s+planner\.(\w+)(?:\s+AS)?\s+(\w+)", text)
    for alias in {alias for _, table, alias in references if table in TENANT_TABLES}:
        wanted = sum(a == alias and table in TENANT_TABLES for _, table, a in references)
        if len(re.findall(rf"\b{alias}\.scope_id = %\(scope_id\)s", text)) < wanted:
            found.append(alias)
    for table, columns, value in re.findall(
        r"INSERT INTO planner\.(\w+)(?: AS \w+)? \((\w+).*?(?:SELECT|VALUES \()\s*(\S+?),", text, re.DOTALL
    ):
        if table in TENANT_TABLES and (columns, value) != ("scope_id", "%(scope_id)s"):
            found.append(table)
    return found


@pytest.mark.parametrize("name", sorted(TENANTS))
def test_every_reference_to_a_tenant_table_carries_the_scope_and_none_can_be_left_out(name: str) -> None:
    text = TENANTS[name]
    tables = re.findall(r"\bplanner\.(\w+)", text)
    mentioned = sum(table in TENANT_TABLES for table in tables)
    fenced = len(re.findall(r"%\(scope_id\)s", text))
    assert unfenced(text) == []
    assert fenced >= mentioned, "a table without a predicate"
    # The tables of these two are in the arms that they are filled with.
    assert mentioned or name in ("explain_reach", "links")
    for at in (match.start() for match in re.finditer(r"\b\w+\.scope_id = %\(scope_id\)s", text)):
        assert unfenced(text[:at] + "true" + text[text.index(")s", at) + 2 :]) != []


def said(planner: Planner, call: str, *arguments: str) -> tuple[type[PlannerError], str]:
    """Return the error of a call, with the reference that was asked for blotted out."""
    with pytest.raises(PlannerError) as caught:
        getattr(planner, call)(*arguments)
    return type(caught.value), str(caught.value).replace(arguments[-1], "…")


def test_what_is_anothers_and_what_is_missing_answer_alike(tenants: Tenants) -> None:
    with Planner.connect(tenants.app_url, embedder=circle_embedder()) as planner:
        Graph().node("theirs", 0, text="Only there.").into(planner, "tenant-d")
        foreign = ask(planner, "tenant-d")
        mine = tenants.plans[A][0]
        for call in ("load", "replay"):
            there, missing = f"{A}:{foreign.plan_id}", f"{A}:{uuid4()}"
            assert said(planner, call, there) == said(planner, call, missing)
        for call in ("slice_text", "span_row"):
            assert planner.slice_text("tenant-d", "theirs.txt@1:0-11") == "Only there."
            answers = {said(planner, call, A, ref) for ref in ("theirs.txt@1:0-11", "nowhere.txt@1:0-11")}
            assert len(answers) == 1
        assert planner.source("tenant-d", "theirs.txt").spans
        assert len({said(planner, "source", A, name) for name in ("theirs.txt", "nowhere.txt")}) == 1
        for theirs, missing in (
            ("theirs", "nobody"),
            ("theirs.txt", "nowhere.txt"),
            ("theirs.txt@1:0-11", "nowhere.txt@1:0-11"),
            ("Only there", "Only nowhere"),
        ):
            told = [planner.why(mine.ref, what).to_dict() for what in (theirs, missing)]
            assert [answer.pop("what") for answer in told] == [theirs, missing]
            assert told[0] == told[1]
        with psycopg.connect(tenants.url) as conn:
            asked = [ask(planner, A, seeds=[{"node_id": seed}]) for seed in ("theirs", "nobody")]
            assert [nodes_of(conn, plan) for plan in asked] == [{}, {}]
            assert [plan.recall["structured"]["missing_seeds"] for plan in asked] == [["theirs"], ["nobody"]]
