"""The vocabulary of the tables: columns and constraints, named as in the migrations."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from planner.types import OPEN_TX

metadata = sa.MetaData(schema="planner")

ID = sa.Text(collation="C")
"""Ids and keywords compare by bytes, everywhere and in every locale."""

TIME = sa.DateTime(timezone=True)


def column(name: str, kind: Any, **options: Any) -> sa.Column[Any]:
    """Return a column that is never null."""
    return sa.Column(name, kind, nullable=False, **options)


def optional(name: str, kind: Any) -> sa.Column[Any]:
    """Return a column that may be null."""
    return sa.Column(name, kind, nullable=True)


def scope_id() -> sa.Column[Any]:
    """Return the column that leads every tenant table."""
    return column("scope_id", sa.Uuid)


def tx_to() -> sa.Column[Any]:
    """Return the end in transaction time; a row that is current has 2**63 - 1."""
    return column("tx_to", sa.BigInteger, server_default=sa.text(str(OPEN_TX)))


def key(name: str, *columns: str) -> sa.PrimaryKeyConstraint:
    """Return a named primary key."""
    return sa.PrimaryKeyConstraint(*columns, name=name)


def check(name: str, condition: str) -> sa.CheckConstraint:
    """Return a named check."""
    return sa.CheckConstraint(condition, name=name)


def reference(name: str, table: str, columns: str, referred: str | None = None) -> sa.ForeignKeyConstraint:
    """Return a named foreign key; `columns` and `referred` (the same where not given) are split at spaces."""
    targets = [f"planner.{table}.{target}" for target in (referred or columns).split()]
    return sa.ForeignKeyConstraint(columns.split(), targets, name=name)
