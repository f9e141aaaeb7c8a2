"""Expectations: the table that keeps them. The DDL is `0002_expectation.sql`, beside this file."""

from __future__ import annotations

from pathlib import Path

from planner.store.ddl import run_ddl

revision = "0002_expectation"
down_revision = "0001_spine"


def upgrade() -> None:
    """Run the DDL."""
    run_ddl(Path(__file__).with_suffix(".sql"))
