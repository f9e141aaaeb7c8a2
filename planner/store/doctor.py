"""What `planner doctor` finds in a database: each finding is in order, or says what to do. It only reads.

Row security is not read off the catalogue alone: it is tried, as each role, with no scope set and with one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal
from uuid import UUID

import psycopg
from psycopg import sql

from planner.errors import PlannerError, UnsupportedServer
from planner.lexical.terms import ANALYSIS
from planner.store.connect import Connection, run, translated
from planner.store.objects import ROLES, dba_statements
from planner.store.requirements import Facts, require_server
from planner.store.upgrade import MigrationStatus, status

NO_SCOPE = UUID(int=0)
"""The scope of no one: every row is another's."""

_MIGRATE = "run `planner migrate`"
_ONLY_OWNER = "not looked at: this login is not a member of planner_owner"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: `ok` True, False, or None where it is only information; `remedy` is what to do."""

    name: str
    ok: bool | None
    detail: str
    remedy: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON data."""
        return asdict(self)


def examine(database: Connection | str) -> tuple[Check, ...]:
    """Examine a database, given as a URL or an open connection, in one read-only transaction.

    Raises nothing for a database in a bad state: a server that cannot be reached, or a schema that is
    missing, is a finding. Over all scopes it counts edges, ledger entries and nodes, which takes seconds in
    a large database.
    """
    found: list[Check] = []
    try:
        if isinstance(database, str):
            with psycopg.connect(database, autocommit=True, connect_timeout=10) as conn:
                found.extend(_findings(conn))
        else:
            found.extend(_findings(database))
    except psycopg.Error as error:
        remedy = "check the URL, the server and the login's rights"
        found.append(Check("database", False, str(translated(error)), remedy))
    return tuple(found)


def _findings(conn: Connection) -> Iterator[Check]:
    with conn.transaction(force_rollback=True):
        conn.execute("SET TRANSACTION READ ONLY")
        facts = Facts.of(conn)
        yield from _server(facts)
        members = {row[0]: row[1] for row in run(conn, "role_facts", {"roles": list(ROLES)})}
        yield _roles(conn, facts, members)
        yield _login(facts)
        if not any(members.values()):
            return
        found = status(conn)
        yield from _schema(found)
        if found.current != found.head:
            return
        yield _fences(conn)
        yield _probe(conn, members)
        yield _vector_indexes(conn)
        yield from _contents(conn, is_owner=members.get("planner_owner", False))


def _server(facts: Facts) -> Iterator[Check]:
    try:
        require_server(facts)
    except UnsupportedServer as error:
        yield Check("server", False, str(error), "move to a server that has both")
        return
    yield Check("server", True, f"PostgreSQL {facts.server_version}")
    if facts.vector is None:
        yield Check("pgvector", False, f"{facts.vector_available} is there, but not installed", _MIGRATE)
    else:
        yield Check("pgvector", True, f"{facts.vector} in schema {facts.vector_schema}")


def _roles(conn: Connection, facts: Facts, members: dict[str, bool]) -> Check:
    rows = run(conn, "role_facts", {"roles": list(ROLES)}).fetchall()
    unsafe = [name for name, _, bypasses, logs_in in rows if bypasses or logs_in]
    if unsafe:
        remedy = " ".join(f"ALTER ROLE {name} NOSUPERUSER NOBYPASSRLS NOLOGIN;" for name in unsafe)
        return Check("roles", False, f"could bypass row security or log in: {', '.join(unsafe)}", remedy)
    missing = [role for role in ROLES if role not in members]
    barred = [role for role in ROLES if members.get(role) is False and role != "planner_inspector"]
    if not missing and not barred:
        return Check("roles", True, f"{', '.join(ROLES)}; {facts.login} can become them")
    remedy = " ".join(dba_statements(facts.login, missing=missing, inherit_clause=facts.server >= 160000))
    said = f"missing: {', '.join(missing)}" if missing else f"{facts.login} cannot become {', '.join(barred)}"
    return Check("roles", False, said, f"{_MIGRATE}, or as an administrator: {remedy}")


def _login(facts: Facts) -> Check:
    powers = [
        name
        for name, held in (
            ("a superuser", facts.superuser),
            ("bypassing row security", facts.bypasses_row_security),
        )
        if held
    ]
    if powers:
        said = "the planner drops to its own roles in every transaction"
        return Check("login", None, f"{facts.login} is {' and '.join(powers)}; {said}")
    return Check("login", True, f"{facts.login} is subject to row security")


def _schema(found: MigrationStatus) -> Iterator[Check]:
    try:
        found.require_known()
    except PlannerError as error:
        yield Check("schema", False, str(error), "upgrade evidence-planner")
        return
    if found.pending:
        said = f"at {found.current or 'no revision'}; pending: {', '.join(found.pending)}"
        yield Check("schema", False, said, _MIGRATE)
        return
    yield Check("schema", True, f"revision {found.head}")
    if found.drifted:
        yield Check("objects", False, "views, functions, policies or grants are another version's", _MIGRATE)
    else:
        yield Check("objects", True, f"built by this version ({found.objects_wanted[:12]})")


def _fences(conn: Connection) -> Check:
    open_tables = [row[0] for row in run(conn, "unfenced_tables")]
    if open_tables:
        said = f"not forced, or without both policies, on: {', '.join(open_tables)}"
        return Check("row security", False, said, _MIGRATE)
    return Check("row security", True, "enabled and forced, with both policies, on every tenant table")


def _probe(conn: Connection, members: dict[str, bool]) -> Check:
    """Try row security as each role that the login can become: without a scope, and with one."""
    name = "row security tried"
    scope_id, rows = NO_SCOPE, "no rows to see"
    if members.get("planner_owner"):
        with _role(conn, "planner_owner"):
            scope = run(conn, "any_scope").fetchone()
        if scope is not None:
            scope_id, rows = scope[0], f"nothing without a scope, and of {scope[1]} only its own"
    roles: list[Literal["reader", "writer"]] = ["reader", "writer"]
    tried = [role for role in roles if members.get(f"planner_{role}")]
    seen = [f"{table} (as {role})" for role in tried for table in _foreign_tables(conn, role, scope_id)]
    if seen:
        return Check(name, False, f"rows of other scopes are visible in {', '.join(seen)}", _MIGRATE)
    return Check(name, True if tried else None, f"as {' and '.join(tried) or 'no role'}: {rows}")


def _foreign_tables(conn: Connection, role: Literal["reader", "writer"], scope_id: UUID) -> Sequence[str]:
    found: list[str] = []
    for setting in ("", str(scope_id)):
        with _role(conn, f"planner_{role}"):
            conn.execute(sql.SQL("SET LOCAL planner.scope_id = {}").format(sql.Literal(setting)))
            foreign_to = {"scope_id": UUID(setting) if setting else NO_SCOPE}
            found += [row[0] for row in run(conn, "foreign_rows", foreign_to)]
            if role == "writer":
                found += [row[0] for row in run(conn, "foreign_tokens", foreign_to)]
    return sorted(set(found))


def _vector_indexes(conn: Connection) -> Check:
    indexes = run(conn, "vector_indexes").fetchall()
    invalid = [name for name, valid in indexes if not valid]
    if invalid:
        remedy = " ".join(f"DROP INDEX CONCURRENTLY planner.{name};" for name in invalid)
        return Check(
            "vector indexes", False, f"invalid: {', '.join(invalid)}", f"{remedy} and build it again"
        )
    return Check("vector indexes", True, f"{len(indexes)}, all valid" if indexes else "none: search is exact")


def _contents(conn: Connection, *, is_owner: bool) -> Iterator[Check]:
    """Look over all scopes, which only the owner can."""
    if not is_owner:
        yield Check("contents", None, _ONLY_OWNER)
        return
    with _role(conn, "planner_owner"):
        dangling = run(conn, "dangling_edges").fetchall()
        gaps = run(conn, "ledger_gaps").fetchall()
        miscounted = run(conn, "miscounted_scopes").fetchall()
        indexes = run(conn, "index_faults", {"analysis": ANALYSIS}).fetchall()
        unused = [name for (name,) in run(conn, "unused_vector_indexes")]
    counts = ", ".join(f"{number} in {scope}" for scope, number in dangling)
    # A link may wait for a source that has not arrived: worth knowing, not wrong.
    yield Check(
        "edges", None if dangling else True, f"current edges without a current end: {counts or 'none'}"
    )
    if unused:
        remedy = " ".join(f"DROP INDEX CONCURRENTLY planner.{name};" for name in unused)
        yield Check(
            "unused vector indexes", None, f"of models that no scope uses: {', '.join(unused)}", remedy
        )
    if gaps:
        said = "; ".join(
            f"{scope}: {entries} entries for {last} transactions" for scope, last, entries in gaps
        )
        yield Check("ledger", False, said, "restore the scope from a back-up; do not write to it")
    else:
        yield Check("ledger", True, "without gaps in every scope")
    if miscounted:
        said = "; ".join(f"{scope}: {kept} kept, {counted} counted" for scope, kept, counted in miscounted)
        yield Check("live nodes", False, said, "as planner_owner, set scope.live_nodes to the count")
    else:
        yield Check("live nodes", True, "the kept count is the count in every scope")
    yield from _lexical_indexes(indexes)


def _lexical_indexes(found: Sequence[Sequence[Any]]) -> Iterator[Check]:
    """Say which scopes have no lexical index, and of which it does not hold what it should."""
    name = "lexical indexes"
    lacking = [scope for scope, lexical, *_ in found if lexical != ANALYSIS]
    wrong = [
        f"{scope}: {nodes} nodes and {terms} terms counted too many, {missing} rows missing or left over, "
        f"{miscounted} terms miscounted"
        for scope, _, nodes, terms, missing, miscounted in found
        if nodes or terms or missing or miscounted
    ]
    if wrong:
        remedy = "as planner_owner, set scope.lexical to null, then run `planner scope index SCOPE --lexical`"
        yield Check(name, False, "; ".join(wrong), remedy)
    if lacking:
        remedy = "; ".join(f"run `planner scope index {scope} --lexical`" for scope in lacking)
        said = f"not there, or not finished, so that score_model v2 makes no plan: {', '.join(lacking)}"
        yield Check(name, None, said, remedy)
    elif not wrong:
        yield Check(name, True, "each current text is in its scope's, and counted")


@contextmanager
def _role(conn: Connection, role: str) -> Iterator[None]:
    with conn.transaction(force_rollback=True):
        conn.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
        yield
