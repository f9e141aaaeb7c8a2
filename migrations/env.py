"""Alembic's entry: run by `planner.store.upgrade`, which has opened the connection and taken planner_owner.

Online each migration is a transaction of its own, so that a later one may build an index concurrently.
Offline no transaction is written: the script is one whole, to be run by `psql -1`.
"""

from __future__ import annotations

from alembic import context

if context.is_offline_mode():
    context.configure(dialect_name="postgresql", version_table_schema="planner")
    context.run_migrations()
else:
    context.configure(
        connection=context.config.attributes["connection"],
        version_table_schema="planner",
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()
