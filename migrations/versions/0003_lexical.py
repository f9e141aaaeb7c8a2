"""The lexical index: what BM25 reads, and the titles that texts mention. The DDL is `0003_lexical.sql`."""

from __future__ import annotations

from pathlib import Path

from planner.store.ddl import run_ddl

revision = "0003_lexical"
down_revision = "0002_expectation"


def upgrade() -> None:
    """Run the DDL."""
    run_ddl(Path(__file__).with_suffix(".sql"))
