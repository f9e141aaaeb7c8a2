"""Two tenants with the same content, made at the same time, in one database; tokens that are not valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from planner import Planner
from planner.granting import PERMISSIONS
from tests.integration.graph import circle_embedder

A, B, NOBODY = "tenant-a", "tenant-b", "tenant-x"

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@contextmanager
def twins(url: str) -> Iterator[tuple[Planner, Mapping[str, str]]]:
    """Give a planner of both, and the id of a plan of each."""
    with Planner.connect(url, embedder=circle_embedder(), clock=lambda: NOW) as planner:
        plans = {}
        for scope in (A, B):
            planner.ingest_text(scope, "doc.md", "# Harbour\n\nThe gate closes at 10\n\nIt opens at 40\n")
            planner.append(scope, "talk", [{"content": "Is it closed at 20"}])
            plans[scope] = planner.plan(scope, "gate at 10").plan_id
        yield planner, plans


def invalid_tokens(planner: Planner) -> dict[str, str]:
    """Return what is no valid token of the first tenant's, by why it is none."""
    valid = planner.create_token(A, label="test", permissions=PERMISSIONS).text
    secret = valid.rpartition(".")[2]
    revoked = planner.create_token(A, label="gone", permissions=PERMISSIONS)
    planner.revoke_token(A, revoked.token.token_id)
    early = Planner(replace(planner.engine, clock=lambda: NOW - timedelta(days=1)))
    expired = early.create_token(A, label="late", permissions=PERMISSIONS, expires_in=timedelta(hours=1))
    return {
        "another's secret": f"{B}.{secret}",
        "nobody's scope": f"{NOBODY}.{secret}",
        "no scope": secret,
        "no secret": f"{A}.",
        "a wrong secret": f"{A}.{'x' * 43}",
        "no token": "x",
        "one sign more": f"{A}.{secret}=",
        "revoked": revoked.text,
        "expired": expired.text,
    }
